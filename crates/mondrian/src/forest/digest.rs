//! What a model file says about trees that it does not hold.
//!
//! Trees are grown again when a file is read. Unchecked, a small file could ask for sixteen million trees, and a file whose
//! trees come out otherwise (a changed number, other draws) would be accepted. So a file holds the number of cuts of
//! each tree that part its points, and a digest of every [`BLOCK`] of them: reading ends at the first tree that
//! differs, and a file that asks for more growth must be larger in proportion. A cut is `(time, location, dimension,
//! rows)`, which no choice of memory layout changes.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::parallel::prelude::*;

use crate::Result;
use crate::forest::{Forest, NodeStatistics};
use crate::model_file::{Archive, ModelFileError};
use crate::progress::Progress;
use crate::tree::{Kind, Tree};

/// Cuts that one digest covers.
const BLOCK: u32 = 1024;

/// Names of the two arrays in a file.
const CUTS: &str = "growth_cuts";
const DIGESTS: &str = "growth_digests";

/// How a forest's trees, saved without their cuts, must come out when they are grown again.
#[derive(Debug)]
pub struct TreeDigest {
    /// Cuts that part points, one number per tree.
    cuts: Vec<u32>,
    /// The digests of all trees, one after the other.
    digests: Vec<u32>,
}

impl TreeDigest {
    /// What a file says about this many trees.
    ///
    /// # Errors
    /// [`ModelFileError`] where the numbers do not fit together.
    pub(crate) fn read_from(archive: &Archive, n_trees: usize) -> Result<Self> {
        let cuts: Vec<u32> = archive.matrix_slice(CUTS, &[n_trees])?.to_vec();
        let n_digests = cuts.iter().map(|cuts| n_blocks(*cuts)).sum();
        let digests = archive.matrix_slice(DIGESTS, &[n_digests])?.to_vec();
        Ok(Self { cuts, digests })
    }

    /// Where each tree's digests begin.
    fn starts(&self) -> Vec<usize> {
        let mut at = 0;
        let next = |cuts: &u32| {
            let start = at;
            at += n_blocks(*cuts);
            start
        };
        self.cuts.iter().map(next).collect()
    }
}

fn n_blocks(cuts: u32) -> usize {
    cuts.div_ceil(BLOCK) as usize
}

impl<S: Default + Clone + Send + Sync + std::fmt::Debug> Forest<S> {
    /// Writes how the trees came out.
    ///
    /// # Errors
    /// [`ModelFileError::Name`] if the archive has it already.
    pub fn write_growth(&self, archive: &mut Archive) -> Result<()> {
        let trees: Vec<(u32, Vec<u32>)> = self.trees().par_iter().map(|(tree, _)| record(tree)).collect();
        archive.insert_vec(CUTS, trees.iter().map(|(cuts, _)| *cuts).collect())?;
        archive.insert_vec(DIGESTS, trees.into_iter().flat_map(|(_, digests)| digests).collect())
    }

    /// Grows the trees of a model file, as [`Forest::regrow`], and refuses them unless they are those that were saved.
    ///
    /// # Errors
    /// [`ModelFileError::Inconsistent`], after at most one wrong tree per thread; [`crate::Error::TooLarge`] where they would take
    /// more memory than there may be.
    pub fn regrow_as_saved<L: NodeStatistics<Stats = S>>(&mut self, labels: &L, growth: &TreeDigest) -> Result<()> {
        let stop = AtomicBool::new(growth.cuts.len() != self.n_trees());
        let starts = growth.starts();
        self.regrow_each(labels, &mut Progress::none(), Some(crate::memory::limit()), |index, grown| {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let tree = grown();
            let (cuts, digests) = record(&tree);
            let same = growth.cuts.get(index) == Some(&cuts)
                && starts.get(index).and_then(|start| growth.digests.get(*start..)?.get(..digests.len()))
                    == Some(&digests[..]);
            if !same {
                stop.store(true, Ordering::Relaxed);
            }
            same.then_some(tree)
        })?;
        if stop.into_inner() {
            let what = "its trees, grown again, are not those that were saved";
            return Err(ModelFileError::Inconsistent { what }.into());
        }
        Ok(())
    }
}

/// The cuts of a tree that part its points, depth first: how many, and a digest of every block.
fn record(tree: &Tree) -> (u32, Vec<u32>) {
    let (mut cuts, mut digests, mut digest) = (0_u32, Vec::new(), SEED);
    let mut todo = vec![tree.root()];
    while let Some(child) = todo.pop() {
        let Kind::Inner(id) = child.kind() else { continue };
        let node = tree.node(id);
        let [below, above] = tree.children(node);
        todo.extend([above, below]);
        if !node.separates() {
            continue;
        }
        let axis = (node.dim() as u64) << 32 | u64::from(node.count());
        digest = [node.time().to_bits(), node.location().to_bits(), axis].into_iter().fold(digest, mix);
        cuts += 1;
        if cuts.is_multiple_of(BLOCK) {
            digests.push(folded(digest));
            digest = SEED;
        }
    }
    if !cuts.is_multiple_of(BLOCK) {
        digests.push(folded(digest));
    }
    (cuts, digests)
}

const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// One multiplication a word: what is looked for is a wrong number, not a forger.
fn mix(digest: u64, word: u64) -> u64 {
    let product = u128::from(digest ^ word) * 0xD6E8_FEB8_6659_FD93;
    (product >> 64) as u64 ^ product as u64
}

fn folded(digest: u64) -> u32 {
    (digest >> 32) as u32 ^ digest as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forest::{ForestParams, LifetimeChoice, RegressionForest, RegressionParams};
    use crate::model_file::Saved;
    use crate::{Lifetime, Points};

    fn forest() -> RegressionForest {
        let x: Vec<f64> = (0..3000).map(|i| crate::process::NodeKey::root(1, i).draw(0).uniform()).collect();
        let y: Vec<f64> = x.iter().map(|x| x.sin()).collect();
        let lifetime = LifetimeChoice::Value(Lifetime::INFINITE);
        let params = RegressionParams {
            forest: ForestParams { n_trees: 3, lifetime, ..ForestParams::default() },
            ..RegressionParams::default()
        };
        params.fit(Points::row_major(&x, 1).unwrap(), &y).unwrap()
    }

    /// The archive with one array or parameter replaced.
    fn tampered(sound: &Archive, change: impl Fn(&str, &mut Vec<u32>), text: impl Fn(&str) -> String) -> Archive {
        let mut out = Archive::new(sound.kind());
        for (name, array) in sound.arrays() {
            if let Some(numbers) = array.slice::<u32>() {
                let mut numbers = numbers.to_vec();
                change(name, &mut numbers);
                out.insert_vec(name, numbers).unwrap();
            } else {
                out.insert(name, array.shape(), array.slice::<f64>().unwrap().to_vec()).unwrap();
            }
        }
        for (key, value) in sound.metadata() {
            out.set_metadata(key, &text(value)).unwrap();
        }
        out
    }

    #[test]
    fn more_trees_or_other_trees_than_were_saved_are_refused() {
        let sound = forest().to_archive().unwrap();
        let cuts: &[u32] = sound.slice(CUTS).unwrap();
        assert_eq!(cuts, [2999; 3], "every cut parts points that are all different");
        assert_eq!(sound.slice::<u32>(DIGESTS).unwrap().len(), 9);
        let same = tampered(&sound, |_, _| (), str::to_owned);
        assert!(RegressionForest::from_archive(&same).is_ok());
        let refused = |archive: &Archive| assert!(RegressionForest::from_archive(archive).is_err());
        let more = |text: &str| text.replace("\"n_trees\":3,\"rung", "\"n_trees\":16000000,\"rung");
        refused(&tampered(&sound, |_, _| (), more));
        let seed = |text: &str| text.replace("{\"seed\":0,\"n_trees\":3,\"rung", "{\"seed\":7,\"n_trees\":3,\"rung");
        refused(&tampered(&sound, |_, _| (), seed));
        let hit = |wanted: &'static str| {
            move |name: &str, numbers: &mut Vec<u32>| {
                if name == wanted {
                    numbers[1] ^= 1;
                }
            }
        };
        refused(&tampered(&sound, hit(CUTS), str::to_owned));
        refused(&tampered(&sound, hit(DIGESTS), str::to_owned));
        let shorter = |name: &str, numbers: &mut Vec<u32>| {
            if name == DIGESTS {
                numbers.pop();
            }
        };
        refused(&tampered(&sound, shorter, str::to_owned));
    }
}
