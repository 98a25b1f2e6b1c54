//! What keys mean, and what they have chosen.

use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::{cluster::workload::Class, scenario};

/// Clusters to choose from.
const CLUSTERS: usize = 3;

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Play,
    Reset,
    /// One unit more of what is chosen.
    More,
    /// One less.
    Less,
    Move(Step),
}

/// Where the choice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Up,
    Down,
    Left,
    Right,
    NextCluster,
}

/// A scenario, and the level of a class in a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) scenario: usize,
    pub(super) cluster: usize,
    pub(super) class: usize,
}

impl Chosen {
    pub(super) fn moved(self, step: Step) -> Self {
        let Self { scenario, cluster, class } = self;
        match step {
            Step::Up => Self { scenario: scenario.saturating_sub(1), ..self },
            Step::Down => Self { scenario: (scenario + 1).min(scenario::all().len() - 1), ..self },
            Step::Left => Self { class: class.saturating_sub(1), ..self },
            Step::Right => Self { class: (class + 1).min(Class::ALL.len() - 1), ..self },
            Step::NextCluster => Self { cluster: (cluster + 1) % CLUSTERS, ..self },
        }
    }
}

pub(super) fn key(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    if key.kind != KeyEventKind::Press {
        return None;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Enter => Some(Key::Play),
        KeyCode::Char('r') => Some(Key::Reset),
        KeyCode::Char('+' | '=') => Some(Key::More),
        KeyCode::Char('-') => Some(Key::Less),
        KeyCode::Up | KeyCode::Char('k') => Some(Key::Move(Step::Up)),
        KeyCode::Down | KeyCode::Char('j') => Some(Key::Move(Step::Down)),
        KeyCode::Left | KeyCode::Char('h') => Some(Key::Move(Step::Left)),
        KeyCode::Right | KeyCode::Char('l') => Some(Key::Move(Step::Right)),
        KeyCode::Tab => Some(Key::Move(Step::NextCluster)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn keys_mean_what_the_foot_line_says() {
        let press = |code, modifiers| key(&Event::Key(KeyEvent::new(code, modifiers)));
        let none = KeyModifiers::NONE;
        assert_eq!(press(KeyCode::Char('q'), none), Some(Key::Quit));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Quit));
        assert_eq!(press(KeyCode::Char('c'), none), None);
        assert_eq!(press(KeyCode::Enter, none), Some(Key::Play));
        assert_eq!(press(KeyCode::Char('r'), none), Some(Key::Reset));
        assert_eq!(press(KeyCode::Char('+'), none), Some(Key::More));
        assert_eq!(press(KeyCode::Tab, none), Some(Key::Move(Step::NextCluster)));
        let released = KeyEvent { kind: KeyEventKind::Release, ..KeyEvent::from(KeyCode::Enter) };
        assert_eq!(key(&Event::Key(released)), None);
    }

    #[test]
    fn a_choice_stays_within_what_there_is() {
        let step = |chosen: Chosen, steps: &[Step]| {
            steps.iter().fold(chosen, |chosen, step| chosen.moved(*step))
        };
        let first = Chosen::default();
        assert_eq!(step(first, &[Step::Up, Step::Left]), first);
        let last = step(first, &[[Step::Down; 20], [Step::Right; 20]].concat());
        assert_eq!(last, Chosen { scenario: 14, cluster: 0, class: 2 });
        assert_eq!(step(first, &[Step::NextCluster; 3]), first);
    }
}
