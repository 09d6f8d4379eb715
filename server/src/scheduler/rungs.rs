//! The rungs below an idle instance, as those see them who let them go.

use super::boot::TemplateSlot;

/// What can be asked of the place where a template is kept.
pub(super) trait Rungs {
    /// Lets the template go. What brings it back sooner than a boot, if there is such a thing, stays.
    fn demote(&self);

    /// Size of the template's image in memory, bytes; `None` when there is none.
    fn image_bytes(&self) -> Option<u64> {
        None
    }

    /// Removes the image, if there is one.
    fn drop_image(&self) {}
}

impl Rungs for TemplateSlot {
    fn demote(&self) {
        self.clear();
    }
}
