//! Where the interpreter's small objects lie.
//!
//! The interpreter takes memory for them in arenas of 1 MiB, wherever the kernel has room. Here arenas come in pairs, each
//! pair where a large page of the processor's can be: a template's memory that is read from an image is filled by large
//! pages then, many times as fast. Nothing is asked for ahead but addresses.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Size and alignment of a large page.
const LARGE: usize = 2 << 20;

/// The rest of the pair that was begun last: from here up to the next multiple of [`LARGE`]. A multiple of it: none.
static REST: AtomicUsize = AtomicUsize::new(0);

/// `PyObjectArenaAllocator` (Python 3.4 and later).
#[repr(C)]
struct Allocator {
    context: *mut c_void,
    allocate: extern "C" fn(*mut c_void, usize) -> *mut c_void,
    free: extern "C" fn(*mut c_void, *mut c_void, usize),
}

type SetAllocator = unsafe extern "C" fn(*mut Allocator);

/// Has the interpreter take arenas from here. One that has no arenas stays as it is.
pub fn install() {
    // SAFETY: the name is a C string; the interpreter is loaded, and its functions are looked for in all that is.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PyObject_SetArenaAllocator".as_ptr()) };
    if symbol.is_null() {
        return; // not in the stable interface
    }
    // SAFETY: the function of this name has had this type since Python 3.4.
    let set: SetAllocator = unsafe { std::mem::transmute(symbol) };
    let mut allocator = Allocator {
        context: ptr::null_mut(),
        allocate,
        free,
    };
    // SAFETY: the interpreter copies the structure. Arenas that it has already are mappings as well, and `free` unmaps
    // them as its own function would.
    unsafe { set(&raw mut allocator) };
}

extern "C" fn allocate(_context: *mut c_void, size: usize) -> *mut c_void {
    arena(size).unwrap_or(ptr::null_mut())
}

extern "C" fn free(_context: *mut c_void, arena: *mut c_void, size: usize) {
    // SAFETY: the interpreter gives back an arena that nothing lies in any more. It cannot fail for one that is mapped.
    unsafe { libc::munmap(arena, size) };
}

fn arena(size: usize) -> io::Result<*mut c_void> {
    if size == 0 || !LARGE.is_multiple_of(size) {
        return map(size);
    }
    let rest = REST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rest| {
        (!rest.is_multiple_of(LARGE)).then(|| rest + size)
    });
    if let Ok(arena) = rest {
        return Ok(ptr::with_exposed_provenance_mut(arena));
    }
    let pair = aligned()?;
    // What another thread has begun meanwhile stays unused.
    REST.store(pair.expose_provenance() + size, Ordering::Relaxed);
    Ok(pair)
}

/// A mapping of [`LARGE`] bytes at a multiple of it.
fn aligned() -> io::Result<*mut c_void> {
    // Newer kernels put a mapping of this size where it is wanted.
    let first = map(LARGE)?;
    if first.addr().is_multiple_of(LARGE) {
        return Ok(first);
    }
    unmap(first, LARGE)?;
    let wide = map(2 * LARGE)?;
    let before = wide.addr().next_multiple_of(LARGE) - wide.addr();
    let pair = wide.wrapping_byte_add(before);
    unmap(wide, before)?;
    unmap(pair.wrapping_byte_add(LARGE), LARGE - before)?;
    Ok(pair)
}

fn map(size: usize) -> io::Result<*mut c_void> {
    let flags: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice, which nothing else knows of.
    let memory = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(memory)
}

fn unmap(memory: *mut c_void, size: usize) -> io::Result<()> {
    if size == 0 {
        return Ok(());
    }
    // SAFETY: a part of a mapping that `map` has just made and nobody else knows of.
    match unsafe { libc::munmap(memory, size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arenas_are_pairs_in_large_pages() {
        const ARENA: usize = 1 << 20;
        let arenas: Vec<usize> = (0..6).map(|_| arena(ARENA).unwrap().addr()).collect();
        for pair in arenas.as_chunks::<2>().0 {
            assert!(pair[0].is_multiple_of(LARGE), "{arenas:x?}");
            assert_eq!(pair[1], pair[0] + ARENA);
        }
        for address in &arenas {
            let memory = ptr::with_exposed_provenance_mut::<u8>(*address);
            // SAFETY: mapped above, and nobody else's.
            unsafe {
                assert_eq!(memory.read(), 0);
                memory.write_bytes(1, ARENA);
            }
            free(ptr::null_mut(), memory.cast(), ARENA);
        }
        // Of another size: as they are.
        let odd = arena(3 << 20).unwrap();
        free(ptr::null_mut(), odd, 3 << 20);
        let pair = aligned().unwrap();
        assert!(pair.addr().is_multiple_of(LARGE));
        unmap(pair, LARGE).unwrap();
    }
}
