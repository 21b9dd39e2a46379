//! The paper: lines with a time, a piece of rail, and words; cut to the width and painted.

use super::{COLUMNS_MAX, Style, words};

/// The way that a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forward,
    Back,
    Over,
}

/// What is drawn between the time and the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rail {
    /// The journal begins.
    Start,
    /// On the way forward.
    Forward,
    /// The code asks for something.
    Ask,
    /// The decision to roll back.
    Turn,
    /// On the way back.
    Back,
    /// On the way back, between two undos.
    BackArrow,
    /// An undo begins.
    Undo,
    /// The rollback is over.
    Home,
    /// The run is closed.
    End,
    /// Nothing: below the end.
    Below,
    /// Not closed.
    Open,
    /// One process ended and another one goes on.
    Torn(Way),
}

impl Rail {
    /// Five columns, and the tone of them. Double lines lead back.
    fn piece(self) -> (&'static str, Tone) {
        match self {
            Rail::Start => ("●    ", Tone::Forward),
            Rail::Forward => ("│    ", Tone::Forward),
            Rail::Ask => ("├─▶  ", Tone::Forward),
            Rail::Turn => ("╘══╗ ", Tone::Back),
            Rail::Back => ("   ║ ", Tone::Back),
            Rail::BackArrow => ("   ▲ ", Tone::Back),
            Rail::Undo => ("◀══╣ ", Tone::Back),
            Rail::Home => ("╒══╝ ", Tone::Back),
            Rail::End => ("■    ", Tone::Plain),
            Rail::Below => ("     ", Tone::Plain),
            Rail::Open => ("◌    ", Tone::Wait),
            Rail::Torn(Way::Forward | Way::Over) => ("✖╌╌╌ ", Tone::Torn),
            Rail::Torn(Way::Back) => ("╌╌╌✖ ", Tone::Torn),
        }
    }
}

/// What a piece of text is about; a colour in the coloured style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Nothing special.
    Plain,
    /// A name, a heading.
    Strong,
    /// Beside the point.
    Faint,
    /// The rail of the way forward.
    Forward,
    /// The way back.
    Back,
    /// The way back begins.
    Heading,
    /// It worked.
    Good,
    /// It failed.
    Bad,
    /// It waits.
    Wait,
    /// A process died.
    Torn,
}

impl Tone {
    fn code(self) -> Option<&'static str> {
        match self {
            Tone::Plain => None,
            Tone::Strong => Some("1"),
            Tone::Faint => Some("2"),
            Tone::Forward => Some("36"),
            Tone::Back => Some("33"),
            Tone::Heading => Some("1;33"),
            Tone::Good => Some("32"),
            Tone::Bad => Some("31"),
            Tone::Wait => Some("34"),
            Tone::Torn => Some("1;35"),
        }
    }
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Microseconds since the first row.
    pub at_us: Option<i64>,
    pub rail: Rail,
    pub spans: Vec<(Tone, String)>,
}

/// Columns of the time, right-aligned, with the gap behind it.
const TIME_COLUMNS: usize = 12;
/// Columns of the rail.
const RAIL_COLUMNS: usize = 5;
/// Columns that are left for words.
pub(super) const WORDS_COLUMNS: usize = COLUMNS_MAX - TIME_COLUMNS - RAIL_COLUMNS;

impl Line {
    pub fn draw(&self, style: Style) -> String {
        let (rail, tone) = self.rail.piece();
        let torn = matches!(self.rail, Rail::Torn(_));
        let time = self.at_us.map(words::time).unwrap_or_default();
        let mut out = match torn {
            true => paint(style, tone, &format!("{:>TIME_COLUMNS$}", "╌".repeat(TIME_COLUMNS - 2))),
            false => paint(style, Tone::Faint, &format!("{:>TIME_COLUMNS$}", time + "  ")),
        };
        out.push_str(&paint(style, tone, rail));
        let mut left = WORDS_COLUMNS;
        for (tone, text) in &self.spans {
            let text = cut(&clean(text), left);
            left -= width(&text);
            out.push_str(&paint(style, *tone, &text));
        }
        if torn && left > 1 {
            out.push_str(&paint(style, tone, &format!(" {}", "╌".repeat(left - 1))));
        }
        out.truncate(out.trim_end().len());
        out
    }
}

fn paint(style: Style, tone: Tone, text: &str) -> String {
    match (style, tone.code()) {
        (Style::Colour, Some(code)) if !text.trim().is_empty() => {
            format!("\x1b[{code}m{text}\x1b[0m")
        }
        (Style::Plain | Style::Colour, _) => text.to_owned(),
    }
}

/// Breaks `text` into at most `lines_max` lines of `columns`, at spaces where there are any; the
/// last one is left too long if there is more, to be cut.
pub(super) fn wrap(text: &str, first: usize, columns: usize, lines_max: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in clean(text).split(' ') {
        let room = if lines.len() == 1 { first } else { columns };
        let count = lines.len();
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            line.push_str(word);
        } else if count == lines_max || width(line) + 1 + width(word) <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// `text`, or as much of it as fits and `…`.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = columns.saturating_sub(1);
    for c in text.chars() {
        let Some(rest) = left.checked_sub(char_width(c)) else { break };
        left = rest;
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// Without anything that could move the cursor, change colours or turn the direction of writing.
fn clean(text: &str) -> String {
    let unsafe_here = |c: char| {
        c.is_control()
            || matches!(c, '\u{200E}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if unsafe_here(c) { ' ' } else { c }).collect()
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Columns of a character on a terminal, near enough: the blocks that are wide, and the marks that
/// have no width of their own.
fn char_width(c: char) -> usize {
    match c {
        '\u{0300}'..='\u{036F}' | '\u{200B}'..='\u{200D}' | '\u{FE00}'..='\u{FE0F}' => 0,
        '\u{1100}'..='\u{115F}'
        | '\u{2E80}'..='\u{A4CF}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FE30}'..='\u{FE6F}'
        | '\u{FF00}'..='\u{FF60}'
        | '\u{FFE0}'..='\u{FFE6}'
        | '\u{1F300}'..='\u{1FAFF}'
        | '\u{20000}'..='\u{3FFFD}' => 2,
        _ => 1,
    }
}
