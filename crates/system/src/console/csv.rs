//! Tables for programs.

/// A heading and rows as CSV after RFC 4180: lines end in CR LF, cells that need it are quoted.
pub fn text<C: AsRef<str>>(heading: &[C], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .flexible(true)
        .from_writer(Vec::new());
    // Writing to memory does not fail.
    let _ = writer.write_record(heading.iter().map(|cell| cell.as_ref().as_bytes()));
    for row in rows {
        let _ = writer.write_record(&row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn cells_that_need_quotes() {
        let row = ["a,b", "say \"no\"", "two\nlines", "", "plain"].map(str::to_owned);
        assert_eq!(
            text(&["x", "y,z"], [row.to_vec()]),
            "x,\"y,z\"\r\n\"a,b\",\"say \"\"no\"\"\",\"two\nlines\",,plain\r\n"
        );
        assert_eq!(text(&["x"], []), "x\r\n");
    }
}
