//! The model container: what goes in comes out, what is damaged is refused, nothing panics.

use mondrian::Error;
use mondrian::ModelFileError;
use mondrian::internals::model_file::{Archive, VERSION};
use proptest::prelude::*;

fn sample() -> Archive {
    let mut tree = Archive::new("test.tree");
    tree.insert("times", &[2, 2], vec![0.5, f64::INFINITY, f64::NAN, -0.0]).unwrap();
    tree.insert_vec("children", vec![1_u32, 2, u32::MAX]).unwrap();
    tree.set_params("tree", &(7_u64, "uniform")).unwrap();
    let mut archive = Archive::new("test.forest");
    archive.put("tree0", tree).unwrap();
    archive.insert_vec("bytes", vec![1_u8, 2, 3]).unwrap();
    archive.insert_vec("keys", vec![u64::MAX]).unwrap();
    archive.insert_vec("cells", vec![-5_i64]).unwrap();
    archive.insert_vec("coarse", vec![1.5_f32]).unwrap();
    archive.insert("scalar", &[], vec![2.0]).unwrap();
    archive.insert_vec("none", Vec::<f64>::new()).unwrap();
    archive.set_params("forest", &vec![0.1 + 0.2, 1e-310]).unwrap();
    archive.set_metadata("note", "κ, \"quoted\"\n").unwrap();
    archive
}

fn problem(bytes: &[u8]) -> ModelFileError {
    match Archive::from_bytes(bytes) {
        Err(Error::ModelFile(problem)) => problem,
        other => panic!("refused with a model file error, not {other:?}"),
    }
}

/// The bytes of a hand-written header and data.
fn raw(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[test]
fn what_goes_in_comes_out_bit_for_bit() {
    let archive = sample();
    let bytes = archive.to_bytes().unwrap();
    let back = Archive::from_bytes(&bytes).unwrap();
    assert_eq!(back.to_bytes().unwrap(), bytes);
    assert_eq!(back.metadata(), archive.metadata());
    let tree = back.part("tree0").unwrap();
    assert_eq!((tree.kind(), tree.params::<(u64, String)>("tree").unwrap()), ("test.tree", (7, "uniform".into())));
    let bits: Vec<u64> = tree.matrix_slice::<f64>("times", &[2, 2]).unwrap().iter().map(|x| x.to_bits()).collect();
    assert_eq!(bits, [0.5, f64::INFINITY, f64::NAN, -0.0].map(f64::to_bits));
    assert_eq!(back.params::<Vec<f64>>("forest").unwrap(), [0.1 + 0.2, 1e-310]);
    assert_eq!(back.vec::<i64>("cells").unwrap(), [-5]);
}

#[test]
fn any_safetensors_reader_can_read_it() {
    let bytes = sample().to_bytes().unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let times = tensors.tensor("tree0/times").unwrap();
    assert_eq!((times.dtype(), times.shape()), (safetensors::Dtype::F64, &[2_usize, 2][..]));
    assert_eq!(times.data()[..8], 0.5_f64.to_le_bytes());
    assert_eq!(tensors.len(), sample().arrays().len());
    let (n, _) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(n % 8, 0, "data aligned");
}

#[test]
fn wrong_requests_say_what_is_there() {
    let archive = sample();
    let of = |e: mondrian::Error| match e {
        Error::ModelFile(problem) => problem,
        other => panic!("{other}"),
    };
    assert_eq!(
        of(archive.vec::<u32>("keys").unwrap_err()),
        ModelFileError::WrongType { name: "keys".into(), expected: "U32", found: "U64" }
    );
    assert_eq!(
        of(archive.slice::<f64>("tree0/times").unwrap_err()),
        ModelFileError::WrongShape { name: "tree0/times".into(), expected: vec![4], found: vec![2, 2] }
    );
    assert!(matches!(of(archive.vec::<u32>("gone").unwrap_err()), ModelFileError::Missing { what: "array", .. }));
    assert!(matches!(of(archive.part("tree1").unwrap_err()), ModelFileError::Missing { what: "part", .. }));
    assert!(matches!(of(archive.params::<u8>("forest").unwrap_err()), ModelFileError::Parameters { .. }));
    assert!(matches!(of(archive.check_kind("x").unwrap_err()), ModelFileError::WrongKind { .. }));
    let mut twice = archive;
    for (name, value) in [("bytes", vec![0_u8]), ("", vec![0]), ("__metadata__", vec![0])] {
        assert!(matches!(of(twice.insert_vec(name, value).unwrap_err()), ModelFileError::Name { .. }));
    }
    assert!(matches!(of(twice.insert("m", &[3, 3], vec![0_u8]).unwrap_err()), ModelFileError::WrongShape { .. }));
    for key in ["version", "crc32", "crc32:bytes", "note"] {
        assert!(matches!(of(twice.set_metadata(key, "").unwrap_err()), ModelFileError::Name { .. }));
    }
}

#[test]
fn foreign_and_future_files_are_named_as_such() {
    assert_eq!(problem(b"time,place\n1,2\n"), ModelFileError::NotAModel);
    assert!(matches!(problem(b""), ModelFileError::Truncated { expected: 8, found: 0 }));
    assert_eq!(problem(&raw("{}", b"")), ModelFileError::NotAModel);
    let future = format!(
        r#"{{"__metadata__":{{"format":"mondrian-model","version":"{}"}},"x":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}}"#,
        VERSION + 1
    );
    assert_eq!(problem(&raw(&future, b"\0")), ModelFileError::NewerVersion { found: VERSION + 1, supported: VERSION });
}

#[test]
fn announced_sizes_are_not_believed() {
    // A header length, a shape or an offset of nearly 2^64 must be refused before memory is asked for.
    let mut bytes = u64::MAX.to_le_bytes().to_vec();
    bytes.extend_from_slice(b"{\"a\":1}");
    assert_eq!(problem(&bytes), ModelFileError::NotAModel);
    let mut bytes = (1_u64 << 20).to_le_bytes().to_vec();
    bytes.extend_from_slice(b"{}");
    assert!(matches!(problem(&bytes), ModelFileError::Truncated { .. }));
    let deep = "[".repeat(100_000);
    assert!(matches!(problem(&raw(&format!("{{\"a\":{deep}"), b"")), ModelFileError::Header { .. }));
}

#[test]
fn every_truncation_and_every_flipped_bit_is_caught() {
    let bytes = sample().to_bytes().unwrap();
    for length in 0..bytes.len() {
        problem(&bytes[..length]);
    }
    let original = Archive::from_bytes(&bytes).unwrap().to_bytes().unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // A flip that only changes the JSON's spelling (the case of a checksum's hexadecimal digit) may be read: then
        // nothing has changed.
        if let Ok(archive) = Archive::from_bytes(&flipped) {
            assert_eq!(archive.to_bytes().unwrap(), original, "bit {bit} changed the contents unnoticed");
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(mut header in ".{0,80}", data in proptest::collection::vec(any::<u8>(), 0..40), at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let _ = Archive::from_bytes(&data);
        header.insert(0, '{');
        let _ = Archive::from_bytes(&raw(&header, &data));
        let mut bytes = sample().to_bytes().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = with;
        let _ = Archive::from_bytes(&bytes);
        bytes.splice(at..at, data);
        let _ = Archive::from_bytes(&bytes);
    }
}
