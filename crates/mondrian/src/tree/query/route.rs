//! The cells of many rows in a tree.
//!
//! Gives what [`Locator::locate`](crate::tree::Locator::locate) gives for each row.

use crate::Lifetime;
use crate::tree::query::traverse::{Exit, Exits, Split, Traversal, Visitor};
use crate::tree::{Child, CodedRows, Domain, Landing, Locator, PointStore, Tree};

/// What becomes of a row that comes to a frozen cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frozen {
    /// The cell is cut on, as its key says, until the row and the cell's point part or the lifetime ends: exact cells.
    Resumed,
    /// The cell counts as it stands: enough where a row that leaves it is treated as one that stays.
    AsItStands,
}

/// What is kept of where a row lands.
trait Kept: Copy {
    /// What matters about a row that leaves the training points.
    const EXITS: Exits;

    fn of(landing: Landing) -> Self;
}

impl Kept for Landing {
    const EXITS: Exits = Exits::Timed;

    fn of(landing: Landing) -> Self {
        landing
    }
}

/// The points that a row shares its cell with; none if it left them, whenever that was.
impl Kept for Child {
    const EXITS: Exits = Exits::Untimed;

    fn of(landing: Landing) -> Self {
        if let Landing::Seen(child) = landing { child } else { Self::EMPTY }
    }
}

/// Writes down where rows land.
struct Router<K>(Vec<K>);

impl<K: Kept> Router<K> {
    #[inline]
    fn set(&mut self, rows: &[u32], landing: Landing) {
        let landing = K::of(landing);
        for row in rows {
            self.0[*row as usize] = landing;
        }
    }
}

impl<K: Kept> Visitor for Router<K> {
    type State = ();

    fn exits(&self, (): ()) -> Exits {
        K::EXITS
    }

    #[inline]
    fn cut(&mut self, _: &Split<'_>, (): ()) -> [(); 2] {
        [(), ()]
    }

    #[inline]
    fn leave(&mut self, rows: &[u32], exit: Exit, (): ()) {
        self.set(rows, Landing::Unseen { time: exit.time, parent: exit.parent });
    }

    #[inline]
    fn land(&mut self, rows: &[u32], child: Child, (): ()) {
        self.set(rows, Landing::Seen(child));
    }

    fn resumes(&self, _: u32) -> bool {
        true
    }
}

impl Tree {
    /// The cell of each row at a lifetime of at most the domain's.
    pub fn route(
        &self,
        domain: &Domain,
        store: &PointStore,
        rows: &CodedRows<'_>,
        lifetime: Lifetime,
        frozen: Frozen,
    ) -> Vec<Landing> {
        self.routed(domain, store, rows, lifetime, frozen)
    }

    /// The training points that share the cell of each row, as the child they are under; an empty child for none. As
    /// [`Tree::route`] without the time at which a row left the others, which is expensive to find.
    pub fn cells(
        &self,
        domain: &Domain,
        store: &PointStore,
        rows: &CodedRows<'_>,
        lifetime: Lifetime,
        frozen: Frozen,
    ) -> Vec<Child> {
        if rows.are_few() && frozen == Frozen::Resumed {
            let mut locator = Locator::new(self, domain, store, lifetime);
            return (0..rows.n_rows() as u32)
                .map(|row| locator.cell_of(rows.row(row)).unwrap_or(Child::EMPTY))
                .collect();
        }
        self.routed(domain, store, rows, lifetime, frozen)
    }

    fn routed<K: Kept>(
        &self,
        domain: &Domain,
        store: &PointStore,
        rows: &CodedRows<'_>,
        lifetime: Lifetime,
        frozen: Frozen,
    ) -> Vec<K> {
        let n_rows = rows.n_rows();
        let mut router = Router(vec![K::of(Landing::Seen(self.root())); n_rows]);
        let mut order: Vec<u32> = (0..n_rows as u32).collect();
        let lifetime = lifetime.min(domain.lifetime()).get();
        let draws_cuts = frozen == Frozen::Resumed;
        Traversal { tree: self, domain, store, rows, lifetime, draws_cuts }.run(&mut order, (), &mut router);
        router.0
    }
}
