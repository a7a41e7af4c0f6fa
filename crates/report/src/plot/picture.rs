//! A picture in SVG. Its elements have classes: colours and fonts are a style sheet's.

use cere_format::untrusted::visible;
use std::fmt::Write;

/// Across and down, in units of the picture.
pub type Place = (f64, f64);

/// Rules of pictures in files of their own.
pub const PLAIN: &str = "text{font:12px sans-serif;fill:#333}.title{font-weight:600}.axis,.tick{stroke:#333}.grid{stroke:#ddd}";

/// What is drawn so far.
pub struct Picture {
    class: &'static str,
    size: Place,
    label: String,
    body: String,
}

/// The class of an element, or its own style.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look<'a> {
    /// Class; empty: none.
    pub class: &'a str,
    /// Style; empty: none.
    pub style: &'a str,
}

impl<'a> From<&'a str> for Look<'a> {
    fn from(class: &'a str) -> Self {
        Self { class, style: "" }
    }
}

impl Look<'_> {
    fn attributes(self) -> String {
        let of = |name, value| match value {
            "" => String::new(),
            value => format!(" {name}=\"{value}\""),
        };
        of("class", self.class) + &of("style", self.style)
    }
}

/// Where a text stands.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    at: Place,
    side: &'static str,
    middle: bool,
    angle: Option<f64>,
}

impl Anchor {
    const fn new(at: Place, side: &'static str) -> Self {
        Self {
            at,
            side,
            middle: false,
            angle: None,
        }
    }

    /// It begins at `at`.
    pub const fn start(at: Place) -> Self {
        Self::new(at, "")
    }

    /// Its middle is at `at`.
    pub const fn middle(at: Place) -> Self {
        Self::new(at, " text-anchor=\"middle\"")
    }

    /// It ends at `at`.
    pub const fn end(at: Place) -> Self {
        Self::new(at, " text-anchor=\"end\"")
    }

    /// The place is at half of its height instead of its base line.
    pub const fn half_height(mut self) -> Self {
        self.middle = true;
        self
    }

    /// It is turned round the place by `degrees`.
    pub const fn turned(mut self, degrees: f64) -> Self {
        self.angle = Some(degrees);
        self
    }
}

impl Picture {
    /// An empty one. `label` describes it to those who cannot see it.
    pub fn new(class: &'static str, size: Place, label: &str) -> Self {
        Self {
            class,
            size,
            label: escape(label),
            body: String::new(),
        }
    }

    /// A straight line.
    pub fn line<'a>(&mut self, look: impl Into<Look<'a>>, from: Place, to: Place) {
        let look = look.into().attributes();
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(&format!(
            "<line{look} x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            short(x1),
            short(y1),
            short(x2),
            short(y2)
        ));
    }

    /// A path with its commands; see [`through`].
    pub fn path<'a>(&mut self, look: impl Into<Look<'a>>, commands: &str) {
        let look = look.into().attributes();
        self.add(&format!("<path{look} d=\"{commands}\"/>"));
    }

    /// A circle; a pointer on it shows `title`, if there is one.
    pub fn circle<'a>(
        &mut self,
        look: impl Into<Look<'a>>,
        (x, y): Place,
        radius: f64,
        title: &str,
    ) {
        let look = look.into().attributes();
        let (x, y) = (short(x), short(y));
        let circle = format!("<circle{look} cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"");
        self.add(&match title {
            "" => circle + "/>",
            title => format!("{circle}><title>{}</title></circle>", escape(title)),
        });
    }

    /// A rectangle by its upper left corner.
    pub fn rectangle<'a>(
        &mut self,
        look: impl Into<Look<'a>>,
        (x, y): Place,
        (width, height): Place,
    ) {
        let look = look.into().attributes();
        self.add(&format!(
            "<rect{look} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        ));
    }

    /// A text.
    pub fn text<'a>(&mut self, look: impl Into<Look<'a>>, anchor: Anchor, text: &str) {
        let look = look.into().attributes();
        let (x, y) = (short(anchor.at.0), short(anchor.at.1));
        let down = if anchor.middle { " dy=\".35em\"" } else { "" };
        let turn = |degrees| format!(" transform=\"rotate({degrees:.1} {x} {y})\"");
        let turn = anchor.angle.map_or_else(String::new, turn);
        let text = format!(
            "<text{look} x=\"{x}\" y=\"{y}\"{down}{turn}{}>{}</text>",
            anchor.side,
            escape(text)
        );
        self.add(&text);
    }

    /// What `draw` draws, as one element; a pointer on it shows `title`.
    pub fn group<'a>(
        &mut self,
        look: impl Into<Look<'a>>,
        title: &str,
        draw: impl FnOnce(&mut Self),
    ) {
        let look = look.into().attributes();
        self.add(&format!("<g{look}><title>{}</title>", escape(title)));
        draw(self);
        self.add("</g>");
    }

    fn add(&mut self, element: &str) {
        self.body.push_str(element);
    }

    /// The picture in a page that has its style.
    pub fn in_page(self) -> String {
        self.whole("", "")
    }

    /// The picture in a page that has its colours, with `style` for the rest.
    pub fn in_page_with(self, style: &str) -> String {
        self.whole("", &format!("<style>{style}</style>"))
    }

    /// The picture as a file with `style`, on white paper; as large as its units where it is not `scaled` to where it is shown.
    pub fn file(self, style: &str, scaled: bool) -> String {
        let mut attributes = " xmlns=\"http://www.w3.org/2000/svg\"".to_owned();
        if !scaled {
            let (width, height) = self.size;
            let _ = write!(attributes, " width=\"{width}\" height=\"{height}\"");
        }
        let paper = "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
        self.whole(&attributes, &format!("<style>{style}</style>{paper}"))
    }

    fn whole(&self, attributes: &str, first: &str) -> String {
        let Self {
            class,
            size: (width, height),
            label,
            body,
        } = self;
        format!(
            "<svg{attributes} class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{first}{body}</svg>"
        )
    }
}

/// A coordinate to a tenth, without a zero behind the point.
fn short(coordinate: f64) -> String {
    let text = format!("{coordinate:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The commands of a path along straight lines, each from one place to another.
pub fn lines(ends: impl IntoIterator<Item = (Place, Place)>) -> String {
    let line = |((x1, y1), (x2, y2)): (Place, Place)| {
        format!("M{} {}L{} {}", short(x1), short(y1), short(x2), short(y2))
    };
    ends.into_iter().map(line).collect()
}

/// The commands of a path through `points`.
pub fn through(points: impl IntoIterator<Item = Place>) -> String {
    let places = points.into_iter().map(|(x, y)| format!("{x:.1} {y:.1}"));
    format!("M{}", places.collect::<Vec<_>>().join("L"))
}

/// `text` for element content and attributes.
pub fn escape(text: &str) -> String {
    let text = visible(text).replace('&', "&amp;");
    let text = text.replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}
