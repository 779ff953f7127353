//! Tables: formats, dialects, missing cells, kinds of column.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::harness::Place;

const TABLE: &str = "size;colour;note\n1,5;red;x\n2;blue;NA\n;red;z\n";

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn describe_shows_columns_kinds_and_gaps() {
    let place = Place::new();
    place.write("t.csv", TABLE.replace("1,5", "1.5"));
    place.run("describe t.csv").matches("describe");
    place.run("describe t.csv --json").matches("describe-json");
}

#[test]
fn packing_and_dialect_change_nothing() {
    let place = Place::new();
    let plain = "a,b\n1,x\n2,y\n";
    place.write("plain.csv", plain);
    place.write("packed.csv.gz", gzip(plain));
    place.write("packed-under-any-name", gzip(plain));
    place.write("tabs.tsv", plain.replace(',', "\t"));
    place.write("bars.csv", plain.replace(',', "|"));
    place.write("windows.csv", plain.replace('\n', "\r\n"));
    place.write("marked.csv", format!("\u{feff}{plain}"));
    place.write("bare.csv", "1,x\n2,y\n");
    let columns = |arguments: &str| {
        let ran = place.run(&format!("describe --json {arguments}"));
        ran.succeeded().json()["columns"].clone()
    };
    let expected = columns("plain.csv");
    assert_eq!(expected[0]["mean"], 1.5);
    for name in ["packed.csv.gz", "packed-under-any-name", "tabs.tsv", "bars.csv", "windows.csv", "marked.csv"] {
        assert_eq!(columns(name), expected, "{name}");
    }
    assert_eq!(columns("bare.csv")[1]["name"], "column2");
    assert_eq!(columns("tabs.tsv --delimiter tab"), expected);
    assert_eq!(columns("bare.csv --header yes")[1]["name"], "x");
    let piped = place.run_with("describe --json -", Some(plain.as_bytes()));
    assert_eq!(piped.succeeded().json()["columns"], expected);
    let piped = place.run_with("describe --json -", Some(&gzip(plain)));
    assert_eq!(piped.succeeded().json()["columns"], expected);
}

#[test]
fn parquet_is_read_like_csv() {
    let place = Place::new();
    let schema =
        parse_message_type("message t { required int64 count; optional double size; optional binary colour (UTF8); }")
            .unwrap();
    let file = std::fs::File::create(place.path("t.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
    for group in 0..2_i64 {
        let mut rows = writer.next_row_group().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[group, group + 1, 5], None, None).unwrap();
        column.close().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&[0.5, -1.0], Some(&[1, 0, 1]), None).unwrap();
        column.close().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        let texts = [ByteArray::from("red"), ByteArray::from("blue")];
        column.typed::<ByteArrayType>().write_batch(&texts, Some(&[1, 1, 0]), None).unwrap();
        column.close().unwrap();
        rows.close().unwrap();
    }
    writer.close().unwrap();
    place.write("t.csv", "count,size,colour\n0,0.5,red\n1,,blue\n5,-1,\n1,0.5,red\n2,,blue\n5,-1,\n");
    let parquet = place.run("describe --json t.parquet");
    let csv = place.run("describe --json t.csv");
    assert_eq!(parquet.succeeded().json()["columns"], csv.succeeded().json()["columns"]);
    assert_eq!(csv.json()["columns"][1]["missing"], 2);
    let bytes = std::fs::read(place.path("t.parquet")).unwrap();
    place.write("cut.parquet", &bytes[..bytes.len() / 2]);
    place.run("describe cut.parquet").refused(2, &["cut.parquet", "Parquet"]);
}

#[test]
fn a_quote_that_is_never_closed_is_said_and_not_swallowed() {
    let place = Place::new();
    let row = |i: u32| format!("{i},{},note {i}\n", i % 7);
    let rows: String = (0..1500).map(row).collect();
    let spoiled = format!("a,b,text\n{}", rows.replace("500,3,note 500\n", "500,3,\"note 500\n"));
    place.write("open.csv", &spoiled);
    place.run("describe open.csv").refused(2, &["open.csv", "quote opened at line 502 is never closed"]);
    let fit = "fit open.csv --target a --columns b --model forest --trees 2 --lifetime 1 --out m";
    place.run(fit).refused(2, &["quote opened at line 502 is never closed"]);
    place.write("open.csv.gz", gzip(&spoiled));
    place.run("describe open.csv.gz").refused(2, &["line 502"]);
    // Beyond the start that is looked at for the dialect, and followed by a cell that is quoted rightly.
    let many: String = (0..60_000).map(row).collect();
    place.write("far.csv", format!("a,b,text\n{many}7,7,\"x\n"));
    place.run("describe far.csv").refused(2, &["quote opened at line 60002 is never closed"]);
    place.write(
        "next.csv",
        format!("a,b,text\n{}", rows.replace("note 500\n", "\"note 500\n").replace("note 900", "\"nine\"")),
    );
    place.run("describe next.csv").refused(2, &["quote opened at line 502 ends inside a cell of line 902"]);
    // Line breaks in quotes are fine.
    place.write("fine.csv", "a,text\n1,\"x\ny\"\n2,\"\"\"z\"\"\"\n");
    assert_eq!(place.run("describe fine.csv --json").succeeded().json()["rows"], 2);
}

#[test]
fn wide_tables_are_read_and_endless_rows_refused() {
    let place = Place::new();
    // Names alone are longer than the start of a file that is looked at.
    let n = 100_000;
    let line = |cell: &dyn Fn(usize) -> String| (0..n).map(cell).collect::<Vec<_>>().join(",") + "\n";
    let mut text = line(&|i| format!("gene{i}"));
    for row in 0..4 {
        text += &line(&|i| ((i * 7 + row * 13) % 10).to_string());
    }
    place.write("wide.csv", &text);
    let found = place.run("describe wide.csv --json").succeeded().json();
    assert_eq!((found["rows"].as_u64(), found["columns"].as_array().map(Vec::len)), (Some(4), Some(n)));
    place.run("fit wide.csv --target gene5 --model forest --trees 2 --lifetime inf --out m --quiet").succeeded();
    place.run("predict m wide.csv --out p.csv --quiet").succeeded();
    assert_eq!(place.read("p.csv").lines().count(), 5);
    place.write("cell.csv", format!("a,b\n{},1\nx,2\n", "long ".repeat(1 << 20)));
    assert_eq!(place.run("describe cell.csv --json").succeeded().json()["rows"], 2);
    // 160 MiB without a line break, packed: refused before it is in memory.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"a,b\n").unwrap();
    for _ in 0..160 {
        encoder.write_all(&vec![b'7'; 1 << 20]).unwrap();
    }
    place.write("endless.csv.gz", encoder.finish().unwrap());
    place.run("describe endless.csv.gz").refused(2, &["longer than 64 MiB"]);
}

#[test]
fn describe_looks_at_dates_and_identifiers() {
    let place = Place::new();
    let mut text = "id,sold,price\n".to_owned();
    for i in 0..1500 {
        let _ = writeln!(text, "house-{i},20{:02}-{:02}-{:02},{}", i % 20, 1 + i % 12, 1 + i % 28, 100 + i % 300);
    }
    place.write("t.csv", &text);
    let ran = place.run("describe t.csv");
    for part in ["more than 1000 texts: house-0, house-1", "dates from 2000-01-01 to 2019-12-28", "price"] {
        assert!(ran.succeeded().stdout.contains(part), "{part} in {}", ran.stdout);
    }
    let found = place.run("describe t.csv --json").json();
    assert_eq!(
        (found["columns"][0]["kind"].as_str(), found["columns"][1]["kind"].as_str()),
        (Some("text"), Some("date"))
    );
    let fit = "fit t.csv --target price --model forest --trees 3 --lifetime 2 --out m";
    place.run(fit).refused(2, &["column \"id\" has more than 100 categories", "--exclude \"id\""]);
    let ran = place.run(&format!("{fit} --exclude id"));
    assert!(ran.succeeded().stderr.contains("days since 1970-01-01: sold"), "{}", ran.stderr);
    place.write("number.csv", "sold,price\n17000,3\n");
    place.run("predict m number.csv").refused(2, &["\"17000\" is not a date"]);
}

#[test]
fn dates_are_the_same_days_in_csv_and_parquet() {
    let place = Place::new();
    let schema = "message t { required int32 day (DATE); required int64 milli (TIMESTAMP(MILLIS,true)); \
                  required int64 micro (TIMESTAMP(MICROS,true)); }";
    let schema = parse_message_type(schema).unwrap();
    let file = std::fs::File::create(place.path("t.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[0, 19_782], None, None).unwrap();
    column.close().unwrap();
    for unit in [1_000, 1_000_000] {
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[0, unit * (19_782 * 86_400 + 6 * 3600)], None, None).unwrap();
        column.close().unwrap();
    }
    rows.close().unwrap();
    writer.close().unwrap();
    place.write(
        "t.csv",
        "day,milli,micro\n1970-01-01,1970-01-01T00:00:00Z,1970-01-01 00:00\n\
         2024-02-29,2024-02-29T06:00:00Z,2024-02-29 06:00\n",
    );
    let [parquet, csv] = ["t.parquet", "t.csv"].map(|name| place.run(&format!("describe {name} --json")));
    assert_eq!(parquet.succeeded().json()["columns"], csv.succeeded().json()["columns"]);
    assert_eq!(csv.json()["columns"][1]["max"], 19_782.25);
}

#[test]
fn decimal_commas_are_found_or_told() {
    let place = Place::new();
    place.write("comma.csv", "size;price;name\n1,5;2;a\n2,25;3,5;b\n");
    place.write("point.csv", "size;price;name\n1.5;2;a\n2.25;3.5;b\n");
    let columns =
        |arguments: &str| place.run(&format!("describe --json {arguments}")).succeeded().json()["columns"].clone();
    assert_eq!(columns("comma.csv"), columns("point.csv"));
    assert!(place.run("describe comma.csv").stdout.contains("decimal commas"));
    place.write("all.csv", "size;name\n1,5;a\n2,25;b\n");
    assert_eq!(columns("all.csv --decimal .")[0]["kind"], "category");
    place.write("quoted.csv", "size,price\n\"1,5\",2\n\"2,25\",3\n");
    assert_eq!(columns("quoted.csv --decimal ,")[0]["mean"], 1.875);
    // Only seen late: an error that says what to do.
    let late = "a;b\n".to_owned() + &"1;2\n".repeat(2000) + "1,5;2\n";
    place.write("late.csv", late);
    place.run("describe late.csv").refused(2, &["row 2001, column \"a\": \"1,5\" is not a number", "--decimal ,"]);
    assert_eq!(columns("late.csv --decimal ,")[0]["max"], 1.5);
}

#[test]
fn files_are_called_what_they_are() {
    let place = Place::new();
    for (name, bytes) in [
        ("marked.csv", "\u{feff}a,b\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()),
        ("big.csv", "\u{feff}a,b\n1,2\n".encode_utf16().flat_map(u16::to_be_bytes).collect()),
        ("bare.csv", "alpha,beta\n1,2\n3,4\n".encode_utf16().flat_map(u16::to_le_bytes).collect()),
    ] {
        place.write(name, bytes);
        place.run(&format!("describe {name}")).refused(2, &["UTF-16", "UTF-8"]);
    }
    let schema = parse_message_type("message t { required double a; required binary raw (UTF8); }").unwrap();
    let file = std::fs::File::create(place.path("t.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::default()).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[1.0], None, None).unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&[ByteArray::from("x")], None, None).unwrap();
    column.close().unwrap();
    rows.close().unwrap();
    writer.close().unwrap();
    // The codec stands in the footer as a small number, 0 for none: 8 (in zigzag) is Brotli.
    let bytes = std::fs::read(place.path("t.parquet")).unwrap();
    let spoiled = (0..bytes.len()).rev().filter(|&i| bytes[i] == 0).find_map(|i| {
        let mut changed = bytes.clone();
        changed[i] = 8;
        place.write("brotli.parquet", changed);
        let ran = place.run("describe brotli.parquet");
        ran.stderr.contains("Brotli").then_some(ran)
    });
    spoiled.expect("a file with Brotli's number").refused(2, &["compressed with Brotli", "zstd"]);
}

#[test]
fn numbers_that_overflow_are_called_that() {
    let place = Place::new();
    place.write("t.csv", "a,b,y\n1,2,3\n1e308,3,4\n-1e308,4,5\n2,5,6\n");
    place.run("fit t.csv --target y --out m").refused(2, &["column \"a\"", "1e308", "divide"]);
    let described = place.run("describe t.csv --json").json();
    let a = described["columns"].as_array().unwrap().iter().find(|column| column["name"] == "a").unwrap().clone();
    let (mean, deviation) = (a["mean"].as_f64().unwrap(), a["deviation"].as_f64().unwrap());
    assert!(mean.abs() < 1e293 && (deviation / 0.5_f64.sqrt() / 1e308 - 1.0).abs() < 1e-12, "{mean} ± {deviation}");
    place.write("y.csv", "a,y\n1,2\n2,1e308\n3,4\n");
    place.run("fit y.csv --target y --model forest --out m").refused(2, &["column \"y\"", "1e308"]);
    place.write("small.csv", "a,y\n0.001,2\n0.002,3\n0.003,4\n");
    place.run("fit small.csv --target y --model forest --trees 2 --lifetime 1 --out m --quiet").succeeded();
    place.write("new.csv", "a\n0.001\n1e308\n");
    place.run("predict m new.csv").refused(2, &["row 2, column \"a\": 1e308 is too large"]);
}

/// A text that is different in nearly every row is fitted as classes, with a word.
#[test]
fn a_target_that_names_rows_is_noted() {
    let place = Place::new();
    let rows = |classes: usize| -> String {
        (0..60).fold("a,who\n".to_owned(), |text, i| format!("{text}{},w{}\n", i * 7 % 60, i % classes))
    };
    place.write("names.csv", rows(30));
    let fit = "--target who --model forest --trees 2 --lifetime 1 --out m";
    let noted = place.run(&format!("fit names.csv {fit}"));
    assert!(noted.succeeded().stderr.contains("\"who\" has 30 classes in 60 rows"), "{}", noted.stderr);
    place.write("few.csv", rows(3));
    assert!(!place.run(&format!("fit few.csv {fit}2")).succeeded().stderr.contains("classes in"));
}

/// Tables as they come have columns of one value and of none, and models that cannot learn.
#[test]
fn empty_and_constant_columns_are_named() {
    let place = Place::new();
    let rows = crate::models::table(60);
    let lines =
        rows.lines().enumerate().map(|(i, line)| format!("{line}{}\n", if i == 0 { ",year,blank" } else { ",2013," }));
    place.write("t.csv", lines.collect::<String>());
    let told = place.run("describe t.csv").succeeded().stdout.clone();
    assert!(told.lines().any(|line| line.contains("blank") && line.contains("no value")), "{told}");
    let told = place.run("describe t.csv --json").succeeded().json();
    let blank = told["columns"].as_array().into_iter().flatten().find(|c| c["name"] == "blank").expect("the column");
    assert!(blank["min"].is_null() && blank["missing"] == 60, "{blank}");
    let fit = "fit t.csv --target target --model forest --trees 3 --lifetime 3 --out m --quiet";
    place.run(&format!("{fit} --missing drop")).refused(2, &["every cell is missing in blank", "--exclude"]);
    place.run(&format!("{fit} --missing mean")).succeeded();
    for command in ["fit", "path"] {
        let density = format!("{command} t.csv --columns x,y,year --model density --trees 3 --out d");
        place.run(&density).refused(2, &["column \"year\" has only one value", "--exclude"]);
    }
    place.run("fit t.csv --target target --out l --quiet").succeeded();
    for (command, what) in [("update", "learn more rows"), ("forget", "forget rows")] {
        place.run(&format!("{command} l t.csv")).refused(2, &["laplace model cannot", what]);
    }
}
