//! Tables: formats, dialects, missing cells, kinds of column.

use std::io::Write;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
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
