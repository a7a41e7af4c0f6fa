//! The stream prefetcher of a core.

/// A page that is followed. Lines are those of the prefetcher's level.
#[derive(Debug, Clone, Copy)]
struct Stream {
    page: u64,
    /// The line that trained it last.
    last: u64,
    /// The line fetched farthest ahead.
    ahead: u64,
    direction: Direction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Unknown,
    Up,
    Down,
}

/// The streams, most recently used first.
pub struct Streams {
    streams: Vec<Stream>,
    most: usize,
    distance: u64,
    /// Logarithm of the lines of a page.
    page_shift: u32,
}

impl Streams {
    /// None yet.
    pub fn new(most: usize, distance: u32, page_shift: u32) -> Self {
        Self {
            streams: Vec::with_capacity(most),
            most,
            distance: distance.into(),
            page_shift,
        }
    }

    /// Notes a line that the program asked for: afterwards [`next`](Self::next) says what to fetch. `false` if nothing
    /// is: a page's first line, a line asked for again, or one against the direction, which turns the stream.
    pub fn train(&mut self, line: u64) -> bool {
        let page = line >> self.page_shift;
        let Some(at) = self.streams.iter().position(|s| s.page == page) else {
            if self.streams.len() == self.most {
                self.streams.pop();
            }
            let direction = Direction::Unknown;
            self.streams.insert(
                0,
                Stream {
                    page,
                    last: line,
                    ahead: line,
                    direction,
                },
            );
            return false;
        };
        self.streams[..=at].rotate_right(1);
        let stream = &mut self.streams[0];
        let direction = match line.cmp(&stream.last) {
            std::cmp::Ordering::Equal => return false,
            std::cmp::Ordering::Greater => Direction::Up,
            std::cmp::Ordering::Less => Direction::Down,
        };
        stream.last = line;
        let turned = stream.direction != Direction::Unknown && stream.direction != direction;
        let overtaken = match direction {
            Direction::Up => stream.ahead < line,
            _ => stream.ahead > line,
        };
        if stream.direction != direction || overtaken {
            stream.ahead = line;
        }
        stream.direction = direction;
        !turned
    }

    /// The next line that the stream trained last fetches, if it is near enough and in the page.
    pub fn next(&mut self) -> Option<u64> {
        let stream = self.streams.first_mut()?;
        let next = match stream.direction {
            Direction::Up => stream.ahead.checked_add(1),
            Direction::Down => stream.ahead.checked_sub(1),
            Direction::Unknown => None,
        }?;
        if next >> self.page_shift != stream.page || next.abs_diff(stream.last) > self.distance {
            return None;
        }
        stream.ahead = next;
        Some(next)
    }
}
