//! Maps: no field is one today, and the language has them.

use std::{collections::BTreeMap, rc::Rc};

use bigfleet_operator::bootstrap::template::Value;

use crate::sample::rendered;

fn map(entries: &[(&str, Value)]) -> Value {
    let entries = entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    Value::Map(Rc::new(entries.collect::<BTreeMap<_, _>>()))
}

#[test]
fn maps_are_walked_by_name_and_miss_nothing() {
    let data = map(&[("b", Value::Int(2)), ("a", Value::string("x")), ("c", map(&[]))]);
    for (template, expected) in [
        ("{{ range $k, $v := . }}{{ $k }}={{ $v }};{{ end }}", "a=x;b=2;c=map[];"),
        ("{{ range . }}{{ . }} {{ end }}", "x 2 map[] "),
        ("{{ range .c }}{{ else }}empty{{ end }}{{ if .c }}true{{ end }}", "empty"),
        ("{{ .a }} {{ .none }} {{ .none.more }} {{ len . }}", "x <no value> <no value> 3"),
        ("{{ index . \"b\" }} {{ index . \"none\" }}", "2 <no value>"),
        ("{{ . }}", "map[a:x b:2 c:map[]]"),
        (
            "{{ printf \"%q\" .c }}{{ printf \"%v %T\" . .c }}",
            "map[]map[a:x b:2 c:map[]] map[string]interface {}",
        ),
    ] {
        assert_eq!(rendered(template, &data).as_deref(), Ok(expected), "{template}");
    }
    for template in ["{{ index . 1 }}", "{{ .a.b }}", "{{ .a 1 }}", "{{ eq . . }}", "{{ slice . }}"]
    {
        assert!(rendered(template, &data).is_err(), "{template}");
    }
}
