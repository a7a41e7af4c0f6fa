//! Streams: pages that are touched one after the other, rising or falling. Pages further on are opened ahead of the program, so
//! that a stream takes fewer faults. What was opened ahead and never passed is known to the page table of a capture.

use crate::os::sys::PAGE;

/// Streams that are followed at a time.
const STREAMS: usize = 32;
/// Maximum number of pages opened ahead by one fault.
pub const AHEAD: usize = 31;

#[derive(Clone, Copy, Default)]
struct Stream {
    /// The page that was opened last.
    last: usize,
    /// Number of its pages so far; 0 for no stream.
    pages: usize,
    /// The last so many of them were opened ahead.
    ahead: usize,
    down: bool,
    /// Whether its last touch was a write.
    write: bool,
    /// Whether its pages were open before, with fewer rights.
    again: bool,
    /// Touch that it had last.
    at: u64,
}

/// Where a fault lies in a stream.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    index: usize,
    /// Whether addresses fall.
    pub down: bool,
    /// How many pages may be opened ahead.
    pub ahead: usize,
    /// [start, end) of the pages that were opened ahead before and that the stream has passed.
    pub passed: (usize, usize),
}

/// The streams that are followed.
pub struct Streams {
    all: [Stream; STREAMS],
    /// Touches so far.
    touches: u64,
    /// Maximum number of pages opened ahead.
    pub most: usize,
}

/// The range of `count` pages that follow `page` in a direction.
pub fn beyond(page: usize, count: usize, down: bool) -> (usize, usize) {
    match down {
        true => (page - count * PAGE, page),
        false => (page + PAGE, page + (count + 1) * PAGE),
    }
}

impl Streams {
    /// No streams.
    pub fn new() -> Streams {
        Streams {
            all: [Stream::default(); STREAMS],
            touches: 0,
            most: AHEAD,
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        for stream in &mut self.all {
            stream.pages = 0;
        }
    }

    /// The page is touched by a fault, for writing or not, `again` if it was open before.
    pub fn follow(&mut self, page: usize, write: bool, again: bool) -> Place {
        self.touches += 1;
        if let Some(index) = self.find(page, again) {
            return self.go_on(index, page, write);
        }
        // The one that had a touch longest ago makes room.
        let all = 0..STREAMS;
        let index = all.min_by_key(|i| self.all[*i].at).unwrap_or(0);
        self.all[index] = Stream {
            last: page,
            pages: 1,
            write,
            again,
            at: self.touches,
            ..Stream::default()
        };
        Place {
            index,
            down: false,
            ahead: 0,
            passed: (0, 0),
        }
    }

    /// The longest stream that goes on with `page`.
    fn find(&self, page: usize, again: bool) -> Option<usize> {
        let goes_on = |stream: &Stream| {
            let up = page == stream.last + PAGE && (stream.pages == 1 || !stream.down);
            let down = page + PAGE == stream.last && (stream.pages == 1 || stream.down);
            stream.pages > 0 && stream.again == again && (up || down)
        };
        let these = (0..STREAMS).filter(|i| goes_on(&self.all[*i]));
        these.max_by_key(|i| self.all[*i].pages)
    }

    fn go_on(&mut self, index: usize, page: usize, write: bool) -> Place {
        let stream = &mut self.all[index];
        let down = page < stream.last;
        let passed = match down {
            true => (stream.last, stream.last + stream.ahead * PAGE),
            false => (stream.last + PAGE - stream.ahead * PAGE, stream.last + PAGE),
        };
        // What is written here and there is not opened for writing ahead.
        let alike = stream.write == write;
        *stream = Stream {
            last: page,
            pages: stream.pages + 1,
            ahead: 0,
            down,
            write,
            at: self.touches,
            ..*stream
        };
        // At most half as many as it has shown, because it may end at once.
        let ahead = (stream.pages / 2).min(self.most);
        Place {
            index,
            down,
            ahead: if alike { ahead } else { 0 },
            passed: if passed.0 < passed.1 { passed } else { (0, 0) },
        }
    }

    /// So many pages were opened ahead at a place.
    pub fn opened(&mut self, place: Place, ahead: usize) {
        let stream = &mut self.all[place.index];
        let (start, end) = beyond(stream.last, ahead, place.down);
        if ahead > 0 {
            stream.last = if place.down { start } else { end - PAGE };
            stream.pages += ahead;
            stream.ahead = ahead;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages per fault while `pages` are touched, and those that were passed.
    fn faults(pages: &[usize]) -> (Vec<usize>, Vec<(usize, usize)>) {
        let mut streams = Streams::new();
        let (mut opened, mut passed) = (Vec::new(), Vec::new());
        let mut open = std::collections::HashSet::new();
        for page in pages {
            if !open.insert(page * PAGE) {
                continue;
            }
            let place = streams.follow(page * PAGE, false, false);
            let range = beyond(page * PAGE, place.ahead, place.down);
            open.extend((range.0..range.1).step_by(PAGE));
            streams.opened(place, place.ahead);
            opened.push(1 + place.ahead);
            if place.passed != (0, 0) {
                passed.push((place.passed.0 / PAGE, place.passed.1 / PAGE));
            }
        }
        (opened, passed)
    }

    #[test]
    fn a_stream_is_opened_ahead_by_half_of_its_length() {
        let rising: Vec<usize> = (100..120).collect();
        let (opened, passed) = faults(&rising);
        assert_eq!(opened, [1, 2, 3, 4, 6, 9]);
        assert_eq!(passed, [(102, 103), (104, 106), (107, 110), (111, 116)]);
        let falling: Vec<usize> = (100..120).rev().collect();
        let (opened, passed) = faults(&falling);
        assert_eq!(opened, [1, 2, 3, 4, 6, 9]);
        assert_eq!(passed[..2], [(117, 118), (114, 116)]);
        let long: Vec<usize> = (1000..3000).collect();
        let (opened, _) = faults(&long);
        assert_eq!(opened.iter().max(), Some(&(AHEAD + 1)));
    }

    #[test]
    fn what_skips_pages_or_turns_is_no_stream() {
        let third: Vec<usize> = (100..400).step_by(3).collect();
        assert!(faults(&third).0.iter().all(|n| *n == 1));
        let turning = [100, 101, 99, 98, 103];
        assert_eq!(faults(&turning).0, [1, 2, 1, 2, 3]);
    }

    #[test]
    fn a_write_in_a_stream_of_reads_opens_nothing_ahead() {
        let mut streams = Streams::new();
        let mut ahead = |page, write| streams.follow(page * PAGE, write, false).ahead;
        assert_eq!([ahead(10, false), ahead(11, false)], [0, 1]);
        assert_eq!([ahead(12, true), ahead(13, false)], [0, 0]);
        assert_eq!(ahead(14, false), 2);
        assert_eq!(streams.follow(15 * PAGE, false, true).ahead, 0);
    }

    #[test]
    fn many_streams_at_a_time() {
        let mixed: Vec<usize> = (0..200)
            .flat_map(|i| (0..20).map(move |s| (s + 1) * 10_000 + i))
            .collect();
        let (opened, _) = faults(&mixed);
        assert!(opened.len() < mixed.len() / 8, "{}", opened.len());
    }
}
