//! The tour: what it says, what it writes, that it repeats itself.

use crate::harness::Place;

#[test]
fn the_tour_says_what_it_did_and_ends_with_the_report() {
    let place = Place::new();
    let ran = place.run("tour");
    ran.matches_but_for_fractions("tour");
    assert_eq!(ran.stdout.lines().last(), Some("tour/report.html"));
    let page = place.read("tour/report.html");
    place.run("tour --threads 1 --quiet --out again").succeeded();
    assert_eq!(place.read("again/report.html"), page, "the same report on any number of threads");
    place.run("tour --seed 1 --quiet --out other").succeeded();
    assert_ne!(place.read("other/report.html"), page);
    place.write("file", "");
    place.run("tour --out file").refused(2, &["file is a file"]);
}
