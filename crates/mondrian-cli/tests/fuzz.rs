//! The fuzz targets on stable Rust: a kept corpus, then mutations of it for some seconds.
//!
//! `MONDRIAN_FUZZ_SECONDS=600 cargo test -p mondrian-cli --test fuzz` runs it for longer, `MONDRIAN_FUZZ_SEED` starts
//! elsewhere. An input that panics is written to `fuzz/corpus/TARGET/` and stays there as a regression test. libFuzzer
//! targets over the same functions are in `fuzz/`.

use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mondrian::internals::model_file::{Archive, Element};
use mondrian_cli::fuzz;

type Target = fn(&[u8]);

#[test]
fn model_reader() {
    run(
        "model",
        fuzz::model,
        &[b"{", b"}", b"\"", b"\"shape\":[", b"18446744073709551615", b"\"U8\"", b"crc32:", b"\\u0000"],
    );
}

#[test]
fn table_reader() {
    run(
        "table",
        fuzz::table,
        &[b",", b";", b"\"", b"\n", b"\r\n", b"NaN", b"inf", b"1e308", b"-1e-320", b"a", b"\t", b"\x1f\x8b", b"PAR1"],
    );
}

/// Whole models with their numbers changed and their checksums right: what only the models' own checks can refuse.
#[test]
fn model_contents() {
    kept("fitted").iter().for_each(|bytes| fuzz::fitted(bytes));
    // The model files kept for every release are the seeds: one of each kind.
    let seeds = std::fs::read_dir(folder("../../testdata/models")).expect("kept models");
    let seeds = seeds.flat_map(|version| files(&version.expect("an entry").path().join("program"), "mondrian"));
    let corpus: Vec<Archive> = seeds.map(|bytes| Archive::from_bytes(&bytes).expect("a sound model")).collect();
    assert!(corpus.len() >= 6, "a model of each kind");
    let mut random = Random(setting("MONDRIAN_FUZZ_SEED").unwrap_or(1));
    let started = Instant::now();
    let (mut n, patience) = (0_u64, Duration::from_secs(setting("MONDRIAN_FUZZ_SECONDS").unwrap_or(2)));
    while started.elapsed() < patience {
        let mut archive = changed(&corpus[random.below(corpus.len())], &mut random);
        if random.below(2) == 0 {
            archive = fuzz::resealed(&archive).unwrap_or(archive);
        }
        let bytes = archive.to_bytes().expect("an archive can be written");
        attempt("fitted", fuzz::fitted, &bytes, &random);
        n += 1;
    }
    println!("fitted: {n} inputs in {:?}, no panic", started.elapsed());
}

/// The archive with some numbers, lengths or digits of its parameters changed.
fn changed(archive: &Archive, random: &mut Random) -> Archive {
    let mut out = Archive::new(archive.kind());
    let victim = random.below(archive.arrays().len() + 1);
    for (i, (name, array)) in archive.arrays().iter().enumerate() {
        let hit = i == victim;
        // One type after the other: an array holds exactly one of them.
        if let Some(v) = array.slice::<f64>() {
            put(&mut out, name, array.shape(), v, hit, random, &[f64::NAN, f64::INFINITY, -1.0, 0.0, 1e308, 0.5]);
        } else if let Some(v) = array.slice::<u32>() {
            put(&mut out, name, array.shape(), v, hit, random, &[0, 1, u32::MAX, 1 << 31, 7]);
        } else if let Some(v) = array.slice::<u64>() {
            put(&mut out, name, array.shape(), v, hit, random, &[0, 1, u64::MAX, 1 << 63, 7]);
        } else if let Some(v) = array.slice::<i64>() {
            put(&mut out, name, array.shape(), v, hit, random, &[0, 1, i64::MIN, i64::MAX, 7]);
        } else if let Some(v) = array.slice::<u8>() {
            put(&mut out, name, array.shape(), v, hit, random, &[0, 1, 255]);
        }
    }
    for (key, value) in archive.metadata() {
        let mut text = value.clone().into_bytes();
        if victim == archive.arrays().len() && !text.is_empty() {
            let at = random.below(text.len());
            if text[at].is_ascii_digit() {
                match random.below(4) {
                    0 => drop(text.splice(at..at, *b"9999999")),
                    1 => drop(text.splice(at..=at, *b"1e308")),
                    2 => text.insert(at, b'-'),
                    _ => text[at] = b'0' + random.below(10) as u8,
                }
            }
        }
        let text = String::from_utf8(text).expect("digits are ASCII");
        out.set_metadata(key, &text).expect("names that were there");
    }
    out
}

fn put<T: Element>(
    out: &mut Archive,
    name: &str,
    shape: &[usize],
    numbers: &[T],
    hit: bool,
    random: &mut Random,
    odd: &[T],
) {
    let (mut numbers, mut shape) = (numbers.to_vec(), shape.to_vec());
    if hit && !numbers.is_empty() {
        match random.below(4) {
            0 if shape.len() == 1 => {
                numbers.truncate(random.below(numbers.len()));
                shape = vec![numbers.len()];
            }
            1 => {
                let (a, b) = (random.below(numbers.len()), random.below(numbers.len()));
                numbers.swap(a, b);
            }
            _ => {
                let at = random.below(numbers.len());
                numbers[at] = odd[random.below(odd.len())];
            }
        }
    }
    out.insert(name, &shape, numbers).expect("names that were there");
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

fn kept(name: &str) -> Vec<Vec<u8>> {
    let corpus = files(&folder(name), "");
    assert!(!corpus.is_empty(), "a kept corpus in {}", folder(name).display());
    corpus
}

/// The files of a folder whose names end so, sorted by their contents.
fn files(folder: &Path, ending: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .map(|path| std::fs::read(path).expect("a readable file"))
        .collect();
    files.sort();
    files
}

fn setting(key: &str) -> Option<u64> {
    std::env::var(key).ok().and_then(|v| v.parse().ok())
}

fn run(name: &str, target: Target, tokens: &[&[u8]]) {
    let mut corpus = kept(name);
    for bytes in &corpus {
        target(bytes);
    }
    let patience = Duration::from_secs(setting("MONDRIAN_FUZZ_SECONDS").unwrap_or(2));
    let mut random = Random(setting("MONDRIAN_FUZZ_SEED").unwrap_or(1));
    let started = Instant::now();
    let mut n = 0_u64;
    while started.elapsed() < patience {
        let bytes = mutated(&corpus, tokens, &mut random);
        attempt(name, target, &bytes, &random);
        // Mutations of mutations reach further; the pool stays small, so most still start from the kept corpus.
        if random.below(64) == 0 {
            if corpus.len() > 200 {
                let at = 100 + random.below(100);
                corpus.swap_remove(at);
            }
            corpus.push(bytes);
        }
        n += 1;
    }
    println!("{name}: {n} inputs in {:?}, no panic", started.elapsed());
}

/// Runs one input. One that panics, or takes far longer than its size explains, is kept and fails the test.
fn attempt(name: &str, target: Target, bytes: &[u8], random: &Random) {
    let started = Instant::now();
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| target(bytes)));
    let slow = started.elapsed() > PATIENCE;
    if outcome.is_err() || slow {
        let path = folder(name).join(format!("{}-{:016x}", if slow { "slow" } else { "crash" }, random.0));
        std::fs::write(&path, bytes).expect("a kept input");
        panic!("{name}: an input panics or is slow ({:?}); kept as {}", started.elapsed(), path.display());
    }
}

/// Inputs have at most a few kilobytes: whole seconds mean that one asks for more work than its size allows. Generous,
/// since tests share their machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn mutated(corpus: &[Vec<u8>], tokens: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(32)).min(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            4 => drop(bytes.splice(at..at, tokens[random.below(tokens.len())].iter().copied())),
            5 => drop(bytes.splice(at..end, tokens[random.below(tokens.len())].iter().copied())),
            _ => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..(from + 4096).min(other.len())]);
            }
        }
    }
    bytes
}

/// SplitMix64: repeatable, and no dependency.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}
