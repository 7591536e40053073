/* A preloaded library: faults of the system in one program.
 *
 *	CKC_FAULT_PROGRAM=ckc CKC_FAULT=KIND:N LD_PRELOAD=... ckc ...
 *
 * KIND  alloc   the N-th allocation fails
 *       io      the N-th read or write fails with EIO
 *       short   no read or write moves more than N bytes
 *       eintr   every N-th read or write is interrupted before it begins
 *       signal  SIGTERM arrives at the N-th allocation, read or write after
 *               the program has set a handler
 *       slow    no pwrite moves more than 4096 bytes, and each takes N us
 *       full    the disk is full after N bytes of pwrite
 *       quota   so is the user's share of it
 *       kill    SIGKILL before the N-th change of a file or folder: pwrite,
 *               ftruncate, fsync, linkat, link, rename, unlink, mkdir, rmdir
 * N = 0 is never.  CKC_FAULT_COUNT=FILE: the number of allocations, that of
 * reads and writes, and that of changes, at exit.  Programs of other names run
 * as they are.
 *
 * Allocations and changes count that the program, libckr, a compiled model or the
 * C library asks for: what other libraries do is their own affair.  Reads
 * and writes inside the C library's streams are not seen.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t),
     *__libc_realloc(void *, size_t);

enum kind { NONE, ALLOC, IO, SHORT, EINTR_, SIGNAL, SLOW, FULL, QUOTA, KILL };

static struct {
	enum kind kind;
	long n;
	bool on, counts;
	char count[256];                /* path */
} fault;
static atomic_long allocations, transfers, written, changes;

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

__attribute__((constructor)) static void
read_environment(void)
{
	static const char *const name[] = { "", "alloc:", "io:", "short:",
		"eintr:", "signal:", "slow:", "full:", "quota:", "kill:" };
	const char *program = getenv("CKC_FAULT_PROGRAM");
	const char *what = getenv("CKC_FAULT"), *count;
	char exe[4096] = "";

	if (!program || readlink("/proc/self/exe", exe, sizeof exe - 1) < 0
	    || strcmp(base_name(exe), program))
		return;
	for (enum kind k = ALLOC; what && k <= KILL; k++)
		if (!strncmp(what, name[k], strlen(name[k]))) {
			fault.kind = k;
			fault.n = atol(what + strlen(name[k]));
		}
	count = getenv("CKC_FAULT_COUNT");
	if (count && strlen(count) < sizeof fault.count) {
		strcpy(fault.count, count);
		fault.counts = true;
	}
	fault.on = true;
}

__attribute__((destructor)) static void
write_count(void)
{
	char text[64];
	int fd, n;

	if (!fault.counts)
		return;
	fault.on = false;
	n = snprintf(text, sizeof text, "%ld %ld %ld\n", (long)allocations,
	             (long)transfers, (long)changes);
	fd = open(fault.count, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		abort();
	close(fd);
}

/* The caller is the program, libckr, a model or the C library. */
static bool
is_watched(void *caller)
{
	static const char *const others[] = {
		"libgomp", "libglpk", "libopenblas", "libdnnl", "libstdc++",
		"libmpi", "libopen-", "libpng", "libjpeg", "libz.", "libgcc",
		"ld-linux", "libprotobuf", "libcuda", "libtsan", "libasan",
		"libgfortran", "libpmix", "libhwloc", "libevent",
	};
	struct dl_find_object object;
	const char *name;

	if (_dl_find_object(caller, &object))
		return false;
	name = base_name(object.dlfo_link_map->l_name);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!strncmp(name, others[i], strlen(others[i])))
			return false;
	return true;
}

static void
signal_at_nth(void)
{
	static atomic_long handled;
	struct sigaction now;

	if (fault.kind == SIGNAL && !sigaction(SIGTERM, NULL, &now)
	    && now.sa_handler != SIG_DFL && ++handled == fault.n)
		raise(SIGTERM);
}

static bool
allocation_fails(void *caller)
{
	long at;

	if (!fault.on || !is_watched(caller))
		return false;
	at = ++allocations;
	signal_at_nth();
	if (fault.kind != ALLOC || at != fault.n)
		return false;
	errno = ENOMEM;
	return true;
}

void *
malloc(size_t n)
{
	return allocation_fails(__builtin_return_address(0)) ? NULL
		: __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
	return allocation_fails(__builtin_return_address(0)) ? NULL
		: __libc_calloc(n, size);
}

void *
realloc(void *p, size_t n)
{
	return allocation_fails(__builtin_return_address(0)) ? NULL
		: __libc_realloc(p, n);
}

/* True: with errno set.  Lowers *n to what may move. */
static bool
transfer_fails(size_t *n)
{
	long at;

	if (!fault.on)
		return false;
	at = ++transfers;
	signal_at_nth();
	if (fault.kind == SHORT && *n > (size_t)fault.n)
		*n = (size_t)fault.n;
	if (fault.kind == EINTR_ && fault.n && at % fault.n == 0) {
		errno = EINTR;
		return true;
	}
	if (fault.kind == IO && at == fault.n) {
		errno = EIO;
		return true;
	}
	return false;
}

ssize_t
read(int fd, void *p, size_t n)
{
	return transfer_fails(&n) ? -1 : syscall(SYS_read, fd, p, n);
}

ssize_t
write(int fd, const void *p, size_t n)
{
	return transfer_fails(&n) ? -1 : syscall(SYS_write, fd, p, n);
}

ssize_t
pread(int fd, void *p, size_t n, off_t at)
{
	return transfer_fails(&n) ? -1 : syscall(SYS_pread64, fd, p, n, at);
}

static void
count_change(void *caller)
{
	if (fault.on && is_watched(caller) && ++changes == fault.n
	    && fault.kind == KILL)
		raise(SIGKILL);
}

/* The same of what only writes to a file at an offset have. */
static bool
pwrite_fails(size_t *n)
{
	enum { PIECE = 4096 };
	long left = fault.n - written;

	if (fault.on && fault.kind == SLOW) {
		*n = *n < PIECE ? *n : PIECE;
		usleep((useconds_t)fault.n);
	}
	if (!fault.on || (fault.kind != FULL && fault.kind != QUOTA))
		return false;
	if (left <= 0) {
		errno = fault.kind == FULL ? ENOSPC : EDQUOT;
		return true;
	}
	*n = *n < (size_t)left ? *n : (size_t)left;
	written += (long)*n;
	return false;
}

ssize_t
pwrite(int fd, const void *p, size_t n, off_t at)
{
	count_change(__builtin_return_address(0));
	return transfer_fails(&n) || pwrite_fails(&n) ? -1
		: syscall(SYS_pwrite64, fd, p, n, at);
}

int
ftruncate(int fd, off_t n)
{
	count_change(__builtin_return_address(0));
	return (int)syscall(SYS_ftruncate, fd, n);
}

int
fsync(int fd)
{
	count_change(__builtin_return_address(0));
	return (int)syscall(SYS_fsync, fd);
}

int
linkat(int a, const char *from, int b, const char *to, int flags)
{
	count_change(__builtin_return_address(0));
	return (int)syscall(SYS_linkat, a, from, b, to, flags);
}

int
link(const char *from, const char *to)
{
	count_change(__builtin_return_address(0));
	return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int
rename(const char *from, const char *to)
{
	count_change(__builtin_return_address(0));
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int
unlink(const char *path)
{
	count_change(__builtin_return_address(0));
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int
mkdir(const char *path, mode_t mode)
{
	count_change(__builtin_return_address(0));
	return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int
rmdir(const char *path)
{
	count_change(__builtin_return_address(0));
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}
