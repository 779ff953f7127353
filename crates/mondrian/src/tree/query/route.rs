//! Where many points lie in a tree: they go down together and part at each cut.
//!
//! Gives what [`Locator::locate`](crate::tree::Locator::locate) gives for each row. Every node is looked at once for
//! all rows that pass it, and the walk goes along, so that a frozen cell is resumed from where it stands. The cuts of a
//! chain are made again once for all rows that leave it.

use crate::Lifetime;
use crate::process::{Cell, Side};
use crate::simd::partition::partition;
use crate::tree::arena::node::Kind;
use crate::tree::query::frozen::{Landed, Resume};
use crate::tree::query::replay::Replay;
use crate::tree::{Child, CodedRows, Domain, Landing, Locator, PointStore, Tree};

/// What becomes of a row that comes to a frozen cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frozen {
    /// The cell is cut on, as its key says, until the row and the cell's point part or the lifetime ends: exact cells.
    Resumed,
    /// The cell counts as it stands: enough where a row that leaves it is treated as one that stays.
    AsItStands,
}

/// Rows still to be routed: they stand at `parent` and go to one side of it.
struct Task {
    parent: u32,
    side: Side,
    start: usize,
    end: usize,
    /// Depth of the walk at the parent.
    depth: usize,
}

/// What is kept of where a row lands.
trait Kept: Copy {
    /// Whether it matters when a row leaves a chain.
    const IS_TIMED: bool;

    fn of(landing: Landing) -> Self;
}

impl Kept for Landing {
    const IS_TIMED: bool = true;

    fn of(landing: Landing) -> Self {
        landing
    }
}

/// The points that a row shares its cell with; none if it left them, whenever that was.
impl Kept for Child {
    const IS_TIMED: bool = false;

    fn of(landing: Landing) -> Self {
        if let Landing::Seen(child) = landing { child } else { Self::EMPTY }
    }
}

struct Router<'a, K> {
    tree: &'a Tree,
    domain: &'a Domain,
    store: &'a PointStore,
    rows: &'a CodedRows<'a>,
    lifetime: f64,
    /// The walk at the current cell, if frozen cells are resumed.
    cell: Option<Cell>,
    /// Frozen cells put aside, where several can be cut on side by side.
    resume: Option<Resume>,
    /// Another walk, once rows have left a chain.
    replay: Option<Replay>,
    order: Vec<u32>,
    scratch: Vec<u32>,
    landings: Vec<K>,
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
        let mut router = Router::new(self, domain, store, rows, lifetime, frozen);
        router.run();
        router.landings
    }

    /// The training points that share the cell of each row, as the child they are under; an empty child for none. As
    /// [`Tree::route`] without the time at which a row left the others, which is expensive to find in a chain.
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
        let mut router = Router::new(self, domain, store, rows, lifetime, frozen);
        router.run();
        router.landings
    }
}

impl<'a, K: Kept> Router<'a, K> {
    fn new(
        tree: &'a Tree,
        domain: &'a Domain,
        store: &'a PointStore,
        rows: &'a CodedRows<'a>,
        lifetime: Lifetime,
        frozen: Frozen,
    ) -> Self {
        let n_rows = rows.n_rows();
        let cell = (frozen == Frozen::Resumed).then(|| domain.root_cell(tree.key()));
        Self {
            tree,
            domain,
            store,
            rows,
            lifetime: lifetime.min(domain.lifetime()).get(),
            resume: cell.as_ref().and_then(Resume::of),
            cell,
            replay: None,
            order: (0..n_rows as u32).collect(),
            scratch: Vec::new(),
            landings: vec![K::of(Landing::Seen(tree.root)); n_rows],
        }
    }
}

impl<K: Kept> Router<'_, K> {
    fn run(&mut self) {
        let mut tasks: Vec<Task> = Vec::new();
        self.descend(self.tree.root, (0, self.order.len()), None, &mut tasks);
        while let Some(task) = tasks.pop() {
            self.return_to(task.depth);
            let node = self.tree.node(task.parent);
            let (child, rows) = (node.child(task.side), (task.start, task.end));
            self.enter(task.parent, task.side, child);
            self.descend(child, rows, Some(task.parent), &mut tasks);
        }
        self.resume_waiting(true);
    }

    /// Takes rows that stand in a cell further down. Where they part, those above wait in `tasks`.
    fn descend(
        &mut self,
        mut child: Child,
        (start, mut end): (usize, usize),
        mut parent: Option<u32>,
        tasks: &mut Vec<Task>,
    ) {
        while start < end {
            let id = match child.kind() {
                Kind::Inner(id) => id,
                Kind::Chain(id) => {
                    end = self.pass_chain(id, (start, end));
                    child = self.tree.chain(id).end();
                    continue;
                }
                _ => return self.land(child, (start, end), parent),
            };
            let node = *self.tree.node(id);
            if node.time > self.lifetime {
                return self.land_all((start, end), Landing::Seen(child));
            }
            let order = &mut self.order[start..end];
            let middle = start + self.rows.part(order, &mut self.scratch, node.dim(), node.location);
            let side = if middle == start { Side::Above } else { Side::Below };
            if middle != start && middle != end {
                let depth = self.cell.as_ref().map_or(0, Cell::depth);
                tasks.push(Task { parent: id, side: Side::Above, start: middle, end, depth });
                end = middle;
            }
            child = node.child(side);
            parent = Some(id);
            self.enter(id, side, child);
        }
    }

    /// Takes rows past a chain: those that stay come first and end at what is returned, the others have landed.
    fn pass_chain(&mut self, id: u32, (start, end): (usize, usize)) -> usize {
        let (tree, rows) = (self.tree, self.rows);
        let chain = tree.chain(id);
        let x = |row: u32| rows.row(row);
        let n_staying = partition(&mut self.order[start..end], &mut self.scratch, |row| tree.chain_holds(id, x(row)));
        let (middle, mut last) = (start + n_staying, end);
        if !K::IS_TIMED && chain.last_time() <= self.lifetime {
            let time = chain.last_time();
            self.land_all((middle, end), Landing::Unseen { time, parent: chain.end() });
        } else if middle < end && chain.first_time() <= self.lifetime {
            let mut replay = self.replay.take().unwrap_or_else(|| Replay::on(self.domain.root_cell(tree.key())));
            replay.start(tree, x(self.order[middle]), id);
            while middle < last {
                let Some((cut, side)) = replay.next().filter(|(cut, _)| cut.time <= self.lifetime) else { break };
                let stays = |row: u32| Side::of(x(row)[cut.dim as usize], cut.location) == side;
                let n_left = partition(&mut self.order[middle..last], &mut self.scratch, stays);
                self.land_all((middle + n_left, last), Landing::Unseen { time: cut.time, parent: chain.end() });
                last = middle + n_left;
            }
            self.replay = Some(replay);
        }
        if chain.last_time() > self.lifetime {
            // The lifetime ends inside the run: who is still there is at home.
            self.land_all((start, last), Landing::Seen(chain.end()));
            return start;
        }
        if let Some(cell) = &mut self.cell {
            cell.enter_far(tree.arena.chains.further(id));
        }
        middle
    }

    /// Rows that have come to the end of the stored tree.
    fn land(&mut self, child: Child, (start, end): (usize, usize), parent: Option<u32>) {
        match child.kind() {
            Kind::Single(point) if self.resume.is_some() => self.put_aside(child, point, (start, end)),
            Kind::Single(point) if self.cell.is_some() => self.resume(child, point, (start, end)),
            Kind::Empty => {
                let time = parent.map_or(0.0, |id| self.tree.node(id).time);
                let parent = parent.map_or(child, Child::inner);
                self.land_all((start, end), Landing::Unseen { time, parent });
            }
            _ => self.land_all((start, end), Landing::Seen(child)),
        }
    }

    fn land_all(&mut self, (start, end): (usize, usize), landing: Landing) {
        set_landings(&mut self.landings, &self.order[start..end], landing);
    }

    /// Puts a frozen cell aside, to be cut on with others.
    fn put_aside(&mut self, child: Child, point: u32, rows: (usize, usize)) {
        let (Some(resume), Some(cell)) = (&mut self.resume, &self.cell) else { return };
        resume.put(cell, child, point, rows);
        if resume.is_full() {
            self.resume_waiting(false);
        }
    }

    /// Cuts frozen cells on that were put aside, as many as go side by side, or all.
    fn resume_waiting(&mut self, all: bool) {
        let Some(resume) = &mut self.resume else { return };
        let land = |rows: &[u32], landing: Landing| set_landings(&mut self.landings, rows, landing);
        let landed = Landed { store: self.store, rows: self.rows, lifetime: self.lifetime, land };
        resume.run(&mut self.order, landed, all);
    }

    /// Cuts a frozen cell on until all rows have parted from its point or the lifetime ends.
    fn resume(&mut self, child: Child, point: u32, (start, mut end): (usize, usize)) {
        let (rows, frozen, lifetime) = (self.rows, self.store.point(point), self.lifetime);
        // Those from `end` on have landed.
        let mut is_first = true;
        while start < end {
            let Some(cut) = &self.cell.as_ref().and_then(|cell| cell.next_cut_until(lifetime)) else { break };
            let dim = cut.dim as usize;
            let side = Side::of(frozen[dim], cut.location);
            let stays = |row: u32| rows.is_below(row, dim, cut.location) == (side == Side::Below);
            let n_left = partition(&mut self.order[start..end], &mut self.scratch, stays);
            self.land_all((start + n_left, end), Landing::Unseen { time: cut.time, parent: child });
            end = start + n_left;
            if start == end {
                break;
            }
            self.cell.as_mut().expect("it was just cut").enter(cut, side);
            if std::mem::take(&mut is_first) {
                // Rows at the point itself never part from it. Most others have by now, which saves a look at all of them.
                let differs = |row: u32| rows.row(row) != frozen;
                let n_left = partition(&mut self.order[start..end], &mut self.scratch, differs);
                self.land_all((start + n_left, end), Landing::Seen(child));
                end = start + n_left;
            }
        }
        self.land_all((start, end), Landing::Seen(child));
    }

    /// Takes the walk along to a cell where it may be needed.
    #[inline]
    fn enter(&mut self, node: u32, side: Side, child: Child) {
        if let (Some(cell), Kind::Inner(_) | Kind::Single(_) | Kind::Chain(_)) = (&mut self.cell, child.kind()) {
            cell.enter(&self.tree.node(node).cut(), side);
        }
    }

    fn return_to(&mut self, depth: usize) {
        if let Some(cell) = &mut self.cell {
            while cell.depth() > depth {
                cell.leave();
            }
        }
    }
}

/// Says where rows land.
#[inline]
fn set_landings<K: Kept>(landings: &mut [K], rows: &[u32], landing: Landing) {
    for row in rows {
        landings[*row as usize] = K::of(landing);
    }
}
