//! Columns for people.

/// Columns left-aligned with two spaces between them; the last is not filled up.
#[must_use]
pub fn table(lines: impl Iterator<Item = Vec<String>>) -> String {
    let lines: Vec<Vec<String>> = lines.collect();
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_left_aligned_with_two_spaces() {
        let line = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text = table([line(["NAME", "S"]), line(["—long", "22"])].into_iter());
        assert_eq!(text, "NAME   S\n—long  22\n");
    }
}
