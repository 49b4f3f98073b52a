//! Objects that cannot be read.

use super::*;

#[test]
fn an_object_that_is_cut_off_is_named_and_not_read_without_end() {
    let bed = Bed::new();
    let lines: Vec<String> = (0..9_999).map(|number| number.to_string()).collect();
    let text = lines.join("\n");
    bed.write("large.txt", &text);
    bed.git(&["add", "-A"]);
    bed.git(&["commit", "-q", "-m", "large"]);
    let oid = bed.git(&["rev-parse", "HEAD:large.txt"]);
    let (fan, rest) = oid.trim().split_at(2);
    let object = bed.at(".git/objects").join(fan).join(rest);
    let bytes = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    fs::write(&object, &bytes[..bytes.len() / 2]).unwrap();
    let found = damage(&bed.path()).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].path, object);
    assert!(found[0].what.contains("large.txt"), "{found:?}");
}
