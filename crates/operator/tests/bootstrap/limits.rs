//! No template takes more than its share.

use bigfleet_operator::bootstrap::template::{Template, Value};

use crate::sample::limits;

fn render(source: impl Into<Vec<u8>>) -> Result<Vec<u8>, String> {
    let template = Template::parse(source).map_err(|error| error.to_string())?;
    template.render(&Value::string("dot"), limits()).map_err(|error| error.to_string())
}

fn refused(source: &str, why: &str) {
    let error = render(source).map(|output| output.len()).unwrap_err();
    assert!(error.contains(why), "{error}");
}

#[test]
fn time_ends_every_loop() {
    let time = "longer than 100ms";
    refused("{{ range 9223372036854775807 }}{{ end }}", time);
    refused("{{ range 1000000 }}{{ range 1000000 }}{{ if 0 }}{{ end }}{{ end }}{{ end }}", time);
    refused("{{ range 9223372036854775807 }}{{ continue }}{{ end }}", time);
    refused("{{ $x := 0 }}{{ range $x = 9223372036854775807 }}{{ end }}", time);
    // Long strings are not compared for free.
    let long = "{{ $x := printf \"%1000000d\" 1 }}{{ $y := printf \"%1000000d\" 1 }}";
    refused(&format!("{long}{{{{ range 1000000 }}}}{{{{ $_ := eq $x $y }}}}{{{{ end }}}}"), time);
    // Nor is a variable found for free under ten thousand others.
    let declared = "{{ $y := 1 }}".repeat(10_000);
    let source = format!(
        "{{{{ $x := 1 }}}}{declared}{{{{ range 100000 }}}}{{{{ if $x }}}}{{{{ end }}}}{{{{ end }}}}"
    );
    refused(&source, time);
}

#[test]
fn text_ends_at_a_mebibyte() {
    let most = 1 << 20;
    assert_eq!(render(vec![b'a'; most]).unwrap().len(), most);
    assert!(render(vec![b'a'; most + 1]).unwrap_err().contains("1 MiB"));
    let big = "text grows past";
    refused("{{ range 2000000 }}some text that fills up{{ end }}", big);
    refused("{{ printf \"%999999d%999999d\" 1 2 }}", big);
    refused("{{ printf \"%.9999999f\" 1.5 }}", big);
    refused("{{ printf \"%*d\" 1000000 1 | printf \"%s%s\" \"x\" | printf \"%[1]s%[1]s\" }}", big);
    refused("{{ $x := \"0123456789abcdef\" }}{{ range 40 }}{{ $x = print $x $x }}{{ end }}", big);
    refused(
        "{{ printf \"%1000000d\" 1 | html | printf \"%q%q\" \"<\" }}{{ printf \"%500000d\" 1 }}",
        big,
    );
}

#[test]
fn strings_on_the_way_add_up() {
    let source = "{{ range $i := 40 }}{{ $x := printf \"%1000000d\" $i }}{{ end }}";
    refused(source, "add up to more than 16 MiB");
    assert!(render(source.replace("40", "16")).is_ok());
}

#[test]
fn nesting_ends_at_64() {
    let nested = |open: &str, close: &str, depth: usize| {
        [open.repeat(depth), "x".into(), close.repeat(depth)].concat()
    };
    for (open, close) in [
        ("{{ if true }}", "{{ end }}"),
        ("{{ with 1 }}", "{{ end }}"),
        ("{{ range 1 }}", "{{ end }}"),
        ("{{ if false }}{{ else }}", "{{ end }}"),
    ] {
        assert_eq!(render(nested(open, close, 64)).unwrap(), b"x", "{open}");
        let error = render(nested(open, close, 65)).unwrap_err();
        assert!(error.starts_with("template: bootstrap:1: ") && error.contains("64"), "{error}");
    }
    let parens = |depth| format!("{{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(render(parens(64)).unwrap(), b"1");
    assert!(render(parens(65)).unwrap_err().contains("deeper than 64"));
    refused(
        "{{ define \"r\" }}{{ template \"r\" . }}{{ end }}{{ template \"r\" . }}",
        "deeper than 64",
    );
    // Far past what a stack would hold.
    assert!(render(nested("{{ if 1 }}", "{{ end }}", 100_000)).is_err());
    assert!(render(parens(1_000_000)).is_err());
}

#[test]
fn a_long_chain_is_not_deep() {
    let chain = "{{ else if eq . \"no\" }}".repeat(1_000);
    let source = format!("{{{{ if eq . \"no\" }}}}{chain}{{{{ else }}}}end{{{{ end }}}}");
    assert_eq!(render(source).unwrap(), b"end");
}

/// Each of these takes minutes if a step is quadratic, and no time if none is.
#[test]
fn large_sources_are_read_in_one_go() {
    let many = 100_000;
    assert!(render("%[".repeat(many)).is_ok());
    render(format!("{{{{ $_ := printf `{}` }}}}", "%[".repeat(many))).unwrap();
    render("{{/* c */}}".repeat(many)).unwrap();
    render(" {{- /* c */ -}} ".repeat(many)).unwrap();
    assert!(render("{{".repeat(many)).is_err());
    assert!(Template::parse("{{ $x := 1 }}{{ $x }}".repeat(many)).is_ok());
    let blank = format!("{{{{ define \"a\" }}}}{}x{{{{ end }}}}", " {{/**/}}".repeat(many));
    assert!(
        Template::parse(format!("{blank}{}", "{{ define \"a\" }}{{ end }}".repeat(many))).is_ok()
    );
    assert!(Template::parse(format!("{{{{ {} }}}}", "1 ".repeat(many))).is_ok());
    assert!(Template::parse(format!("{{{{ .A{} }}}}", ".B".repeat(many))).is_ok());
}
