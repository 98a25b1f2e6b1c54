//! The terminal: what is printed where, and whether somebody can be asked.

use std::io::{self, BufRead, IsTerminal as _, Write};

use crate::{Error, cli::Consent};

/// Standard input, output and error.
pub struct Console {
    /// Answers to questions.
    pub input: Box<dyn BufRead + Send>,
    /// What was asked for.
    pub out: Box<dyn Write + Send>,
    /// Everything else: plans, questions, notes.
    pub err: Box<dyn Write + Send>,
    /// Whether a person is at the other end.
    pub interactive: bool,
}

impl Console {
    /// The process's own.
    #[must_use]
    pub fn real() -> Self {
        Self {
            input: Box::new(io::BufReader::new(io::stdin())),
            out: Box::new(io::stdout()),
            err: Box::new(io::stderr()),
            interactive: io::stdin().is_terminal(),
        }
    }

    /// A line of what was asked for.
    pub fn line(&mut self, text: &str) -> Result<(), Error> {
        writeln!(self.out, "{text}")?;
        Ok(self.out.flush()?)
    }

    /// Text as it is.
    pub fn text(&mut self, text: &str) -> Result<(), Error> {
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.flush()?)
    }

    /// A line beside it; that nobody reads it is no failure.
    pub fn note(&mut self, text: &str) {
        let _ = writeln!(self.err, "{text}");
    }

    /// Whether the plan may be carried out: prints what will change and asks, unless
    /// `--yes`; `--dry-run` shows it only.
    pub fn consent(&mut self, consent: Consent, plan: &[String]) -> Result<bool, Error> {
        if consent.dry_run {
            for step in plan {
                self.line(&format!("would {step}"))?;
            }
            return Ok(false);
        }
        if consent.yes {
            return Ok(true);
        }
        if !self.interactive {
            return Err(Error::NobodyToAsk);
        }
        for step in plan {
            self.note(&format!("will {step}"));
        }
        write!(self.err, "Go ahead? [y/N] ")?;
        self.err.flush()?;
        let mut answer = String::new();
        self.input.read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(true) } else { Err(Error::Declined) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn asked(
        answer: &'static str,
        interactive: bool,
        consent: Consent,
    ) -> (Result<bool, Error>, String, String) {
        let (out, err) = (Sink::default(), Sink::default());
        let mut console = Console {
            input: Box::new(answer.as_bytes()),
            out: Box::new(out.clone()),
            err: Box::new(err.clone()),
            interactive,
        };
        let verdict = console.consent(consent, &["remove shard s-1".to_owned()]);
        (verdict, out.text(), err.text())
    }

    #[test]
    fn a_person_is_asked() {
        for (answer, goes) in
            [("y\n", true), ("yes\n", true), ("n\n", false), ("\n", false), ("", false)]
        {
            let (verdict, out, err) = asked(answer, true, Consent::default());
            assert_eq!(verdict.is_ok_and(|goes| goes), goes, "{answer:?}");
            assert_eq!(out, "");
            assert_eq!(err, "will remove shard s-1\nGo ahead? [y/N] ");
        }
    }

    #[test]
    fn nobody_is_asked_with_yes_and_nothing_done_with_dry_run() {
        let yes = Consent { yes: true, dry_run: false };
        assert!(asked("", false, yes).0.unwrap());
        let (verdict, out, _) = asked("", false, Consent { yes: true, dry_run: true });
        assert!(!verdict.unwrap());
        assert_eq!(out, "would remove shard s-1\n");
    }

    #[test]
    fn without_a_terminal_nothing_happens_unasked() {
        let error = asked("y\n", false, Consent::default()).0.unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("--yes"), "{error}");
    }
}
