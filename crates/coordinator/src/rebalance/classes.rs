//! Machines that are alike to a coordinator, and which shortfalls they could serve. Many
//! rows are of one class, many shortfalls ask for the same: each question is asked once.

use bigfleet_model::{
    Attributes, Operator, Requirement, Resources,
    machine::{INSTANCE_TYPE_LABEL, ZONE_LABEL},
};

use super::{Figures, Map, Pool, Shortfall, bits::Bits};

/// What a coordinator knows of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class<'a> {
    pub(super) provider: &'a str,
    pub(super) instance_type: &'a str,
    pub(super) zone: &'a str,
    pub(super) capacity_type: i32,
    pub(super) allocatable: &'a Resources,
}

impl<'a> Class<'a> {
    fn of(figures: &'a Figures, pool: &'a Pool) -> Self {
        Self {
            provider: &figures.provider_address,
            instance_type: &pool.instance_type,
            zone: &pool.zone,
            capacity_type: pool.capacity_type,
            allocatable: &pool.allocatable,
        }
    }

    /// Classes of one cell stand side by side.
    pub(super) const fn cell(&self) -> (&'a str, &'a str, &'a str) {
        (self.provider, self.instance_type, self.zone)
    }

    /// Whether the donor may find that such a machine serves this. What only it knows,
    /// labels, counts as met.
    fn could_meet(&self, requirement: &Requirement) -> bool {
        match self.attribute(&requirement.key) {
            Some(_) => requirement.matches(self),
            None => requirement.operator != Operator::Unspecified,
        }
    }
}

impl Attributes for Class<'_> {
    fn attribute(&self, key: &str) -> Option<&str> {
        let field = match key {
            INSTANCE_TYPE_LABEL => self.instance_type,
            ZONE_LABEL => self.zone,
            _ => "",
        };
        // An empty field falls back to a label.
        (!field.is_empty()).then_some(field)
    }
}

/// What a shortfall asks of a machine, wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shape<'a> {
    provider: &'a str,
    requirements: &'a [Requirement],
    least: &'a Resources,
}

/// All classes in order, and the shapes that were asked about so far.
#[derive(Debug)]
pub(super) struct Classes<'a> {
    pub(super) classes: Vec<Class<'a>>,
    /// By class: the number of its cell.
    cells: Vec<u32>,
    /// By shard, for each of its pools the class.
    pools: Vec<Box<[u32]>>,
    shapes: Map<Shape<'a>, u32>,
    /// By shape: the classes that could serve it.
    serving: Vec<Bits>,
}

impl<'a> Classes<'a> {
    /// Of shards in the order of their numbers.
    pub(super) fn of(fleet: impl Iterator<Item = &'a Figures>) -> Self {
        // As they come, then in order: a million pools are looked up once.
        let mut seen: Map<Class<'a>, u32> = Map::default();
        let mut class_of = |figures: &'a Figures, pool: &'a Pool| {
            let next = seen.len() as u32;
            *seen.entry(Class::of(figures, pool)).or_insert(next)
        };
        let classes_of = |figures: &'a Figures| {
            figures.pools.iter().map(|pool| class_of(figures, pool)).collect()
        };
        let mut pools: Vec<Box<[u32]>> = fleet.map(classes_of).collect();
        let mut classes: Vec<(Class<'a>, u32)> = seen.into_iter().collect();
        classes.sort_by(|(one, _), (other, _)| {
            let by_cell = (one.cell(), one.capacity_type).cmp(&(other.cell(), other.capacity_type));
            by_cell.then_with(|| one.allocatable.cmp_by_name(other.allocatable))
        });
        let mut numbers = vec![0; classes.len()];
        for (number, (_, as_it_came)) in classes.iter().enumerate() {
            numbers[*as_it_came as usize] = number as u32;
        }
        for class in pools.iter_mut().flatten() {
            *class = numbers[*class as usize];
        }
        let classes: Vec<Class<'a>> = classes.into_iter().map(|(class, _)| class).collect();
        let mut cells = Vec::with_capacity(classes.len());
        for (number, class) in classes.iter().enumerate() {
            let cell = match number.checked_sub(1) {
                None => 0,
                Some(last) if classes[last].cell() == class.cell() => cells[last],
                Some(last) => cells[last] + 1,
            };
            cells.push(cell);
        }
        Self { classes, cells, pools, shapes: Map::default(), serving: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    /// The classes of a shard's pools, one by one.
    pub(super) fn of_pools(&self, shard: u32) -> impl Iterator<Item = usize> {
        self.pools[shard as usize].iter().map(|class| *class as usize)
    }

    pub(super) fn cell(&self, class: usize) -> u32 {
        self.cells[class]
    }

    /// The number of a cell, if there is one.
    pub(super) fn cell_of(&self, cell: (&str, &str, &str)) -> Option<u32> {
        let at = self.classes.partition_point(|class| class.cell() < cell);
        self.classes.get(at).filter(|class| class.cell() == cell).map(|_| self.cells[at])
    }

    /// What such machines hold, if anybody has any; in another zone, if nobody has them
    /// in this one.
    pub(super) fn find(&self, cell: (&str, &str, &str), capacity_type: i32) -> Option<usize> {
        let (provider, instance_type, _) = cell;
        let at = self.classes.partition_point(|class| class.cell() < (provider, instance_type, ""));
        let alike = self.classes[at..]
            .iter()
            .take_while(|class| (class.provider, class.instance_type) == (provider, instance_type));
        let fits = |class: &Class<'_>| (class.cell() == cell, class.capacity_type == capacity_type);
        let best = alike
            .enumerate()
            .max_by_key(|(number, class)| (fits(class), std::cmp::Reverse(*number)));
        best.map(|(number, _)| at + number)
    }

    /// The shape of a shortfall.
    pub(super) fn shape(&mut self, figures: &'a Figures, shortfall: &'a Shortfall) -> u32 {
        let shape = Shape {
            provider: &figures.provider_address,
            requirements: &shortfall.requirements,
            least: &shortfall.least,
        };
        if let Some(known) = self.shapes.get(&shape) {
            return *known;
        }
        let mut serving = Bits::new(self.classes.len());
        // Only those of the provider, which stand side by side.
        let from = self.classes.partition_point(|class| class.provider < shape.provider);
        for (number, class) in self.classes.iter().enumerate().skip(from) {
            if class.provider != shape.provider {
                break;
            }
            let meets = |one: &Requirement| class.could_meet(one);
            if class.allocatable.covers(shape.least) && shape.requirements.iter().all(meets) {
                serving.set(number);
            }
        }
        let number = self.serving.len() as u32;
        self.serving.push(serving);
        self.shapes.insert(shape, number);
        number
    }

    /// The classes that could serve a shape.
    pub(super) fn serving(&self, shape: u32) -> &Bits {
        &self.serving[shape as usize]
    }
}
