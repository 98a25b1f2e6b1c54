//! Lists as tables, JSON and YAML.

pub use bigfleet_plain::table::table;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{Error, console::Console};

/// `-o`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Columns for people
    #[default]
    Table,
    /// More columns
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// One line of a list.
pub trait Row: Serialize {
    /// Column heads.
    const HEAD: &'static [&'static str];
    /// Heads of the columns that only `wide` shows.
    const WIDE: &'static [&'static str] = &[];

    /// A cell for each column.
    fn cells(&self) -> Vec<String>;

    /// A cell for each column of `wide`.
    fn wide(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Prints a list.
pub fn list<R: Row>(console: &mut Console, format: Format, rows: &[R]) -> Result<(), Error> {
    console.text(&rendered(format, rows)?)
}

/// A list as text.
pub fn rendered<R: Row>(format: Format, rows: &[R]) -> Result<String, Error> {
    let head = |wide: bool| -> Vec<String> {
        let more = if wide { R::WIDE } else { &[] };
        R::HEAD.iter().chain(more).map(|&head| head.to_owned()).collect()
    };
    match format {
        Format::Table => Ok(table(std::iter::once(head(false)).chain(rows.iter().map(R::cells)))),
        Format::Wide => {
            let cells = |row: &R| [row.cells(), row.wide()].concat();
            Ok(table(std::iter::once(head(true)).chain(rows.iter().map(cells))))
        }
        Format::Json | Format::Yaml => document(format, rows),
    }
}

/// One value as a document; tables have no form for it, so they get JSON.
pub fn document<T: Serialize + ?Sized>(format: Format, value: &T) -> Result<String, Error> {
    if format == Format::Yaml {
        return serde_saphyr::to_string(&value)
            .map_err(|error| Error::Failed(format!("cannot write YAML: {error}")));
    }
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::Failed(format!("cannot write JSON: {error}")))?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Pair {
        name: &'static str,
        size: u8,
    }

    impl Row for Pair {
        const HEAD: &'static [&'static str] = &["NAME", "S"];
        const WIDE: &'static [&'static str] = &["TWICE"];

        fn cells(&self) -> Vec<String> {
            vec![self.name.to_owned(), self.size.to_string()]
        }

        fn wide(&self) -> Vec<String> {
            vec![(self.size * 2).to_string()]
        }
    }

    const ROWS: &[Pair] = &[Pair { name: "a", size: 1 }, Pair { name: "—long", size: 22 }];

    #[test]
    fn columns_are_left_aligned_with_two_spaces() {
        let text = rendered(Format::Table, ROWS).unwrap();
        assert_eq!(text, "NAME   S\na      1\n—long  22\n");
        let wide = rendered(Format::Wide, ROWS).unwrap();
        assert_eq!(wide, "NAME   S   TWICE\na      1   2\n—long  22  44\n");
    }

    #[test]
    fn the_head_is_always_there() {
        assert_eq!(rendered::<Pair>(Format::Table, &[]).unwrap(), "NAME  S\n");
        assert_eq!(rendered::<Pair>(Format::Json, &[]).unwrap(), "[]\n");
    }

    #[test]
    fn documents_hold_every_field() {
        let json = rendered(Format::Json, &ROWS[..1]).unwrap();
        assert_eq!(json, "[\n  {\n    \"name\": \"a\",\n    \"size\": 1\n  }\n]\n");
        let yaml = rendered(Format::Yaml, &ROWS[..1]).unwrap();
        assert!(yaml.contains("name: a") && yaml.contains("size: 1"), "{yaml}");
    }
}
