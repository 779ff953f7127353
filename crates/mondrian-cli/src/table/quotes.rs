//! Detection of unclosed quotes and endless rows while the bytes of a CSV file are read.
//!
//! An unclosed quote turns the rest of the file into one cell; the parser accepts it, and rows are lost silently. The
//! guard tracks the quoting of the bytes by the parser's rules, with the line number.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use crate::failure::TableError;

/// Largest number of bytes of a row.
pub(super) const MOST_ROW_BYTES: u64 = 1 << 26;

/// The position of the last byte in its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a cell's first byte.
    Start,
    /// In a cell without quotes, or after its quotes.
    Plain,
    /// Inside quotes.
    Quoted,
    /// After a quote inside quotes: it ends them, or is the first half of an escaped one.
    Ending,
}

/// A reader that refuses unclosed quotes and endless rows.
pub(super) struct QuoteGuard<R> {
    inner: R,
    /// The separator; `None` for any separator.
    separator: Option<u8>,
    state: State,
    /// The line of the next byte, counted from 1, and that of the last opening quote.
    line: u64,
    opened: u64,
    /// Bytes since the last row that the parser has finished; it sets this to 0.
    in_row: Rc<Cell<u64>>,
}

impl<R: Read> QuoteGuard<R> {
    pub(super) fn new(inner: R, separator: Option<u8>, in_row: Rc<Cell<u64>>) -> Self {
        Self { inner, separator, state: State::Start, line: 1, opened: 0, in_row }
    }

    fn is_separator(&self, byte: u8) -> bool {
        self.separator.map_or(super::dialect::SEPARATORS.contains(&byte), |separator| separator == byte)
    }

    fn follow(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Most tables have no quotes: then only the last byte and the number of lines matter.
        if !matches!(self.state, State::Quoted | State::Ending) && !bytes.contains(&b'"') {
            self.line += bytes.iter().map(|&b| u64::from(b == b'\n')).sum::<u64>();
            if let Some(&last) = bytes.last() {
                self.state = self.after(last);
            }
            return Ok(());
        }
        for &byte in bytes {
            self.state = match (self.state, byte) {
                (State::Start, b'"') => {
                    self.opened = self.line;
                    State::Quoted
                }
                (State::Quoted, b'"') => State::Ending,
                (State::Quoted, _) | (State::Ending, b'"') => State::Quoted,
                (State::Ending, _) if self.opened < self.line && !self.ends_cell(byte) => {
                    return Err(self.closed_inside());
                }
                (_, _) => self.after(byte),
            };
            self.line += u64::from(byte == b'\n');
        }
        Ok(())
    }

    fn after(&self, byte: u8) -> State {
        // The mark of UTF-8 before the first cell is no part of it.
        if self.line == 1 && self.state == State::Start && b"\xef\xbb\xbf".contains(&byte) {
            return State::Start;
        }
        if self.is_separator(byte) || byte == b'\n' || byte == b'\r' { State::Start } else { State::Plain }
    }

    fn ends_cell(&self, byte: u8) -> bool {
        self.is_separator(byte) || byte.is_ascii_whitespace()
    }

    fn error(what: String, hint: &'static str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, TableError { what, hint })
    }

    /// A quoted cell over several lines followed by text: the quote that seems to end it is more likely the first of
    /// another cell.
    fn closed_inside(&self) -> io::Error {
        Self::error(
            format!("the quote opened at line {} ends inside a cell of line {}", self.opened, self.line),
            "close it on its own line, or double it if it is part of the text",
        )
    }

    fn never_closed(&self) -> io::Error {
        Self::error(
            format!("the quote opened at line {} is never closed", self.opened),
            "close it, or double it if it is part of the text",
        )
    }

    fn too_long(&self) -> io::Error {
        if self.state == State::Quoted {
            return self.never_closed();
        }
        Self::error(
            format!("the row at line {} is longer than {} MiB", self.line, MOST_ROW_BYTES >> 20),
            "is it a table? rows end with a line break",
        )
    }
}

impl<R: Read> Read for QuoteGuard<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into)?;
        if n == 0 && !into.is_empty() && self.state == State::Quoted {
            return Err(self.never_closed());
        }
        self.follow(&into[..n])?;
        self.in_row.set(self.in_row.get() + n as u64);
        if self.in_row.get() > MOST_ROW_BYTES {
            return Err(self.too_long());
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of the text, read in pieces of this size.
    fn complaint(text: &str, piece: usize) -> Option<String> {
        let mut guard = QuoteGuard::new(text.as_bytes(), Some(b','), Rc::default());
        let mut buffer = vec![0; piece];
        loop {
            match guard.read(&mut buffer) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(e) => return Some(e.to_string()),
            }
        }
    }

    #[test]
    fn quotes_are_followed_as_the_parser_does() {
        for (text, expected) in [
            ("a,b\n1,\"x\"\n", None),
            ("a,b\n1,\"x\ny\"\n2,z\n", None),
            ("a,b\n1,\"x \"\"y\"\" z\"\n", None),
            ("a,b\n1,5\" pipe\n2,z\n", None),
            ("a,b\n1,\"x\" \n", None),
            ("a,b\n\"\"\n", None),
            ("\u{feff}\"a\nb\",c\n1,2\n", None),
            ("a,b\n1,\"x\n2,y\n3,z\n", Some("opened at line 2 is never closed")),
            ("a,b\n1,x\n2,\"\"\"y\n", Some("opened at line 3 is never closed")),
            ("a,b\n1,\"x\n2,y\n3,\"z\"\n", Some("opened at line 2 ends inside a cell of line 4")),
        ] {
            for piece in [1, 2, 3, 100] {
                let found = complaint(text, piece);
                assert_eq!(found.is_some(), expected.is_some(), "{text:?}: {found:?}");
                assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()), "{text:?}");
            }
        }
    }

    #[test]
    fn a_row_without_an_end_is_refused_before_it_is_in_memory() {
        let in_row = Rc::<Cell<u64>>::default();
        let mut guard = QuoteGuard::new(io::repeat(b'7'), Some(b','), Rc::clone(&in_row));
        let n = io::copy(&mut guard, &mut io::sink()).map_err(|e| e.to_string());
        assert!(n.is_err_and(|e| e.contains("longer than 64 MiB")));
        assert!(in_row.get() < MOST_ROW_BYTES + (1 << 20));
    }
}
