//! Cookies of a browser, and values that fill several of them.

use http::{HeaderMap, header::COOKIE};

/// Browsers keep no larger cookie: 4,096 bytes with its name and attributes.
pub(super) const MOST: usize = 3_800;

/// Cookies that one value may fill. Many servers read no more than 16 KiB of a request's head, and
/// the browser sends all of them with every request.
const PIECES: usize = 3;

/// Bytes that one value may have.
pub(super) const MOST_IN_ALL: usize = PIECES * CHUNK;

/// What is left of a cookie beside the number of them.
const CHUNK: usize = MOST - 2;

fn piece(name: &str, at: usize) -> String {
    if at == 0 { name.to_owned() } else { format!("{name}_{at}") }
}

/// The cookies that hold an ASCII value, by name; none if it is too long. The first says how many
/// there are, so that one left over from before is not read.
pub(super) fn split(name: &str, value: &str) -> Option<Vec<(String, String)>> {
    let chunks: Vec<&[u8]> = value.as_bytes().chunks(CHUNK).collect();
    let count = chunks.len();
    let cookie = |(at, chunk): (usize, &[u8])| {
        let text = String::from_utf8_lossy(chunk);
        let text = if at == 0 { format!("{count}.{text}") } else { text.into_owned() };
        (piece(name, at), text)
    };
    (count <= PIECES).then(|| chunks.into_iter().enumerate().map(cookie).collect())
}

/// The value that was split.
pub(super) fn join(headers: &HeaderMap, name: &str) -> Option<String> {
    let (count, first) = cookie(headers, name)?.split_once('.')?;
    let count = count.parse().ok().filter(|count| (1..=PIECES).contains(count))?;
    (1..count)
        .try_fold(first.to_owned(), |so_far, at| Some(so_far + cookie(headers, &piece(name, at))?))
}

/// Cookies of a value that this browser has, from this one on.
pub(super) fn held(headers: &HeaderMap, name: &str, from: usize) -> Vec<String> {
    let names = (from..PIECES).map(|at| piece(name, at));
    names.filter(|name| cookie(headers, name).is_some()).collect()
}

/// The cookie of this name.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        all.flat_map(|all| all.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carrying(cookies: &[(String, String)]) -> HeaderMap {
        let all: Vec<String> =
            cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        HeaderMap::from_iter([(COOKIE, all.join("; ").parse().unwrap())])
    }

    #[test]
    fn cookies_are_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, "a=1; session=x=y; b=2".parse().unwrap());
        assert_eq!((cookie(&headers, "session"), cookie(&headers, "c")), (Some("x=y"), None));
    }

    #[test]
    fn a_long_value_comes_back_from_its_pieces() {
        for (length, count) in [(1, 1), (CHUNK, 1), (CHUNK + 1, 2), (MOST_IN_ALL, PIECES)] {
            let value: String = ('a'..='z').cycle().take(length).collect();
            let pieces = split("s", &value).unwrap();
            assert_eq!(pieces.len(), count);
            assert!(pieces.iter().all(|(_, text)| text.len() <= MOST));
            assert_eq!(join(&carrying(&pieces), "s"), Some(value));
        }
        assert_eq!(split("s", &"x".repeat(MOST_IN_ALL + 1)), None);
    }

    #[test]
    fn a_piece_that_is_left_over_is_not_read_and_one_that_is_missing_is_missed() {
        let mut pieces = split("s", &"x".repeat(CHUNK + 1)).unwrap();
        let short = split("s", "y").unwrap();
        let over = carrying(&[short[0].clone(), pieces[1].clone()]);
        assert_eq!(join(&over, "s").as_deref(), Some("y"));
        assert_eq!(
            (held(&over, "s", 0), held(&over, "s", 1)),
            (vec!["s".to_owned(), "s_1".to_owned()], vec!["s_1".to_owned()])
        );
        pieces.pop();
        assert_eq!(join(&carrying(&pieces), "s"), None);
        for broken in ["x", "0.x", "4.x", "99.x", ".x"] {
            assert_eq!(join(&carrying(&[("s".to_owned(), broken.to_owned())]), "s"), None);
        }
    }
}
