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
    numbers: Map<Class<'a>, u32>,
    shapes: Map<Shape<'a>, u32>,
    /// By shape: the classes that could serve it.
    serving: Vec<Bits>,
}

impl<'a> Classes<'a> {
    pub(super) fn of(fleet: impl Iterator<Item = &'a Figures> + Clone) -> Self {
        let mut numbers: Map<Class<'a>, u32> = Map::default();
        for figures in fleet {
            for pool in &figures.pools {
                numbers.insert(Class::of(figures, pool), 0);
            }
        }
        let mut classes: Vec<Class<'a>> = numbers.keys().copied().collect();
        classes.sort_by(|one, other| {
            let by_cell = (one.cell(), one.capacity_type).cmp(&(other.cell(), other.capacity_type));
            by_cell.then_with(|| one.allocatable.cmp_by_name(other.allocatable))
        });
        let mut cells = Vec::with_capacity(classes.len());
        for (number, class) in classes.iter().enumerate() {
            if let Some(known) = numbers.get_mut(class) {
                *known = number as u32;
            }
            let cell = match number.checked_sub(1) {
                None => 0,
                Some(last) if classes[last].cell() == class.cell() => cells[last],
                Some(last) => cells[last] + 1,
            };
            cells.push(cell);
        }
        Self { classes, cells, numbers, shapes: Map::default(), serving: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    /// The class of a pool that was given to [`Classes::of`].
    pub(super) fn number(&self, figures: &'a Figures, pool: &'a Pool) -> Option<usize> {
        self.numbers.get(&Class::of(figures, pool)).map(|number| *number as usize)
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
