/* A happens-before checker of shared memory, and limits of launches.
 *
 * Kernels are compiled with -fsanitize=thread, whose calls before every read
 * and write come here: no other run time is linked.  Shared memory is what lies
 * in thread-local storage, dynamic and static.  For every byte of it the last
 * writer and the readers since are kept.  Two accesses of one block, one of
 * them a write, must be ordered: by __syncthreads, or by __syncwarp in one
 * warp.  Shuffles, votes, mma and ldmatrix order nothing.  A copy of cp.async
 * is a write under way from its start until its thread waits for it.  Bytes
 * that no thread of the block has written must not be read.
 *
 * The states of a byte: Flanagan and Freund, FastTrack, PLDI 2009; barriers of
 * whole groups make a clock one number.
 */
#ifndef TESTS_CUDA_RACES_H
#define TESTS_CUDA_RACES_H

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EMU_UNSEEN __attribute__((no_sanitize("thread")))

namespace emu {

#pragma GCC push_options
#pragma GCC optimize ("O2")

/* Extern __shared__ memory of a launch: first of what threads share. */
enum { SHARED = 232448, UNASKED = 48 << 10 };

/* Bytes that are kept track of together: no kernel shares smaller elements. */
enum { GRAIN = 2 };

alignas(128) static thread_local unsigned char dynamic[SHARED];

enum access { READ, WRITE, UPDATE, COPY };      /* UPDATE: atomic */

/* Of GRAIN bytes of shared memory; times are those of `now`, 0: never. */
struct cell {
	uint32_t wrote, read;           /* behind so many barriers */
	uint32_t wrote_order, read_order;       /* ... of the warp */
	uint32_t lanes;                 /* readers, of one warp */
	uint32_t wrote_at, read_at;     /* code, from the library's start */
	uint16_t writer;
	uint8_t reader;                 /* a warp */
	uint8_t how : 4;                /* it was written: an access */
	uint8_t many : 1;               /* other warps have read it, too */
};

/* A static variable that a block shares. */
struct variable {
	const char *name;               /* mangled */
	size_t at, size;
	uint64_t launch;                /* the last one that touched it */
};

static const char *kernel_name;         /* of this launch */
static uint64_t launch_number;
static size_t dynamic_bytes, static_bytes, most_bytes;
static unsigned now_thread, now_block;
static uint32_t block_began, now, *warp_order;

static uintptr_t library, shared_at;
static size_t shared_bytes;
static cell *cells;
static char *image;                     /* of the library: its symbols */
static variable variables[1024];
static unsigned nvariables;

/* ---- messages ---- */

EMU_UNSEEN inline const char *
library_path()
{
	static char path[4096];
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4200];
	uintptr_t first, last, here = (uintptr_t)library_path;

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%zx-%zx %*s %*s %*s %*s %4095s", &first,
		           &last, path) == 3 && first <= here && here < last)
			break;
	if (f)
		fclose(f);
	return path;
}

/* Functions and lines of code. */
EMU_UNSEEN inline void
print_place(const char *what, uint32_t at)
{
	char command[4300];

	fprintf(stderr, "%s\n", what);
	fflush(stderr);
	/* the call has its line, not what follows it */
	snprintf(command, sizeof command, "addr2line -Cfsipe '%s' %#x >&2",
	         library_path(), at - 1);
	if (system(command))
		fprintf(stderr, "+%#x\n", at);
}

EMU_UNSEEN inline const variable *
variable_at(size_t at)
{
	for (unsigned i = 0; i < nvariables; i++)
		if (at - variables[i].at < variables[i].size)
			return &variables[i];
	return NULL;
}

EMU_UNSEEN inline void
print_byte(size_t at)
{
	size_t from = (uintptr_t)dynamic - shared_at;
	const variable *v = variable_at(at);

	if (at - from < SHARED)
		fprintf(stderr, "byte %zu of dynamic shared memory",
		        at - from);
	else
		fprintf(stderr, "byte %zu of %s", v ? at - v->at : at,
		        v ? v->name : "static shared memory");
}

EMU_UNSEEN inline void
print_race(const cell &c, size_t at, access how, uint32_t here,
           bool against_read)
{
	static const char *const verb[] = { "reads", "writes", "updates",
	                                    "begins to copy to" };
	bool written = c.wrote >= block_began;

	fprintf(stderr, "emulated GPU: %s: block %u: thread %u %s ",
	        kernel_name, now_block, now_thread, verb[how]);
	print_byte(at);
	if (against_read)
		fprintf(stderr, ", which warp %u%s read", c.reader,
		        c.many ? " and others" : "");
	else if (written)
		fprintf(stderr, ", which thread %u %s", c.writer,
		        c.how == COPY ? "copies to" : "wrote");
	fprintf(stderr, against_read || written
	        ? ": no barrier orders the two\n"
	        : ", which no thread has written\n");
	print_place("here:", here);
	if (against_read || written)
		print_place("there:", against_read ? c.read_at : c.wrote_at);
}

/* CKR_EMULATE_RACES=all: one per place is told, and the process fails in the
 * end. */
EMU_UNSEEN inline void
race(const cell &c, size_t at, access how, uint32_t here, bool against_read)
{
	static uint32_t told[256];
	static unsigned n;
	const char *all = getenv("CKR_EMULATE_RACES");

	for (unsigned i = 0; i < n; i++)
		if (told[i] == here)
			return;
	print_race(c, at, how, here, against_read);
	if (!all || strcmp(all, "all") || n == 256)
		abort();
	if (!n)
		atexit([] { fflush(NULL); _exit(1); });
	told[n++] = here;
}

/* ---- accesses ---- */

/* Whether the last write is not ordered before what happens now. */
EMU_UNSEEN inline bool
meets_write(const cell &c, access how)
{
	unsigned w = now_thread / 32;

	if (c.wrote < block_began)
		return false;
	if (c.how == COPY)
		return true;
	if (c.wrote != now || c.writer == now_thread
	    || (how == UPDATE && c.how == UPDATE))
		return false;
	return c.writer / 32u != w || c.wrote_order == warp_order[w];
}

/* Whether a read since is not. */
EMU_UNSEEN inline bool
meets_read(const cell &c)
{
	unsigned w = now_thread / 32;

	return c.read == now
		&& (c.many || c.reader != w
		    || (c.read_order == warp_order[w]
		        && c.lanes & ~(1u << now_thread % 32)));
}

EMU_UNSEEN inline void
note_read(cell &c, uint32_t here)
{
	unsigned w = now_thread / 32, lane = 1u << now_thread % 32;

	c.read_at = here;
	if (c.read == now && c.reader != w) {
		c.many = true;
		return;
	}
	if (c.read != now || c.read_order != warp_order[w])
		c.lanes = 0;
	if (c.read != now)
		c.many = false;
	c.read = now;
	c.reader = (uint8_t)w;
	c.read_order = warp_order[w];
	c.lanes |= lane;
}

EMU_UNSEEN inline void
note_write(cell &c, access how, uint32_t here)
{
	c.wrote = now;
	c.wrote_order = warp_order[now_thread / 32];
	c.wrote_at = here;
	c.writer = (uint16_t)now_thread;
	c.how = how;
	c.read = 0;
}

/* Whether it only says once more what is known. */
EMU_UNSEEN inline bool
read_before(const cell &c)
{
	unsigned w = now_thread / 32;

	return c.read == now && c.reader == w && c.read_order == warp_order[w]
		&& c.lanes >> now_thread % 32 & 1;
}

EMU_UNSEEN inline void
touch_cell(size_t at, access how, uint32_t here)
{
	cell &c = cells[at / GRAIN];

	if (how == READ && read_before(c))
		return;
	if (meets_write(c, how) || (how == READ && c.wrote < block_began))
		race(c, at, how, here, false);
	if (how == READ) {
		note_read(c, here);
		return;
	}
	if (meets_read(c))
		race(c, at, how, here, true);
	note_write(c, how, here);
}

[[noreturn]] EMU_UNSEEN inline void
refuse(const char *why)
{
	fprintf(stderr, "emulated GPU: %s: %s: %zu bytes of dynamic and %zu of "
	        "static shared memory; this launch may have %zu\n",
	        kernel_name, why, dynamic_bytes, static_bytes, most_bytes);
	abort();
}

/* Static memory of a launch is known once it has been touched. */
EMU_UNSEEN inline void
count_variable(size_t at)
{
	variable *v = (variable *)variable_at(at);

	if (!v || v->launch == launch_number)
		return;
	v->launch = launch_number;
	static_bytes += v->size;
	if (dynamic_bytes + static_bytes > most_bytes)
		refuse("too much shared memory");
}

EMU_UNSEEN __attribute__((noinline)) void
touch_shared(size_t at, size_t n, access how, const void *pc)
{
	uint32_t here = (uint32_t)((uintptr_t)pc - library);

	if (at - ((uintptr_t)dynamic - shared_at) >= SHARED)
		count_variable(at);
	if (at % GRAIN || n % GRAIN)
		refuse("races.h keeps track of pairs of bytes");
	for (size_t i = at; i < at + n && i < shared_bytes; i += GRAIN)
		touch_cell(i, how, here);
}

EMU_UNSEEN inline void
touch(const void *p, size_t n, access how, const void *pc)
{
	if ((uintptr_t)p - shared_at < shared_bytes)
		touch_shared((uintptr_t)p - shared_at, n, how, pc);
}

/* A copy of n bytes has been waited for. */
EMU_UNSEEN inline void
land(const void *p, size_t n)
{
	size_t at = (uintptr_t)p - shared_at;

	for (size_t i = at; i < at + n && i < shared_bytes; i += GRAIN)
		note_write(cells[i / GRAIN], WRITE, cells[i / GRAIN].wrote_at);
}

/* ---- the library's memory that threads share ---- */

EMU_UNSEEN inline bool
holds(const struct dl_phdr_info *o, const void *p)
{
	for (int i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_LOAD
		    && (uintptr_t)p - o->dlpi_addr - o->dlpi_phdr[i].p_vaddr
		    < o->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

EMU_UNSEEN inline int
find_shared(struct dl_phdr_info *o, size_t, void *bytes)
{
	if (!holds(o, &cells))
		return 0;
	library = o->dlpi_addr;
	shared_at = (uintptr_t)o->dlpi_tls_data;
	for (int i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_TLS)
			*(size_t *)bytes = o->dlpi_phdr[i].p_memsz;
	return 1;
}

EMU_UNSEEN inline char *
read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *all = NULL;
	long n;

	if (f && !fseek(f, 0, SEEK_END) && (n = ftell(f)) > 0) {
		all = (char *)calloc((size_t)n + 1, 1);
		rewind(f);
		if (fread(all, 1, (size_t)n, f) != (size_t)n)
			all = NULL;
	}
	if (f)
		fclose(f);
	return all;
}

EMU_UNSEEN inline void
add_variable(const ElfW(Sym) *s, const char *names)
{
	const char *name = names + s->st_name;

	if ((s->st_info & 15) == STT_TLS && !strncmp(name, "_ZZ", 3)
	    && nvariables < sizeof variables / sizeof *variables)
		variables[nvariables++] = { name, s->st_value, s->st_size, 0 };
}

/* Call f for each symbol of the library. */
EMU_UNSEEN inline void
each_symbol(void (*f)(const ElfW(Sym) *, const char *names))
{
	const ElfW(Ehdr) *e;
	const ElfW(Shdr) *section;

	if (!image)
		image = read_file(library_path());
	if (!image)
		return;
	e = (const ElfW(Ehdr) *)image;
	section = (const ElfW(Shdr) *)(image + e->e_shoff);
	for (unsigned i = 0; i < e->e_shnum; i++) {
		const ElfW(Shdr) *t = &section[i];

		if (t->sh_type != SHT_SYMTAB)
			continue;
		for (size_t k = 0; k < t->sh_size; k += sizeof(ElfW(Sym)))
			f((const ElfW(Sym) *)(image + t->sh_offset + k),
			  image + section[t->sh_link].sh_offset);
	}
}

/* ---- launches ---- */

/* What a kernel has asked for, and what the assembler gave. */
struct asked {
	const void *kernel;
	size_t bytes;
	unsigned registers;             /* of a thread; 0: not asked for */
	bool loaded;                    /* launched outside of a graph */
};

static asked asked_for[256];

inline asked *
asked_by(const void *kernel)
{
	asked *a = asked_for;

	while (a < asked_for + 255 && a->kernel && a->kernel != kernel)
		a++;
	a->kernel = kernel;
	return a;
}

/* Shared memory that a block may have: CUDA C++ Programming Guide, table
 * "Technical Specifications per Compute Capability". */
inline size_t
block_limit()
{
	const char *s = getenv("CKR_FAKE_GPU_ARCH");
	int arch = s ? atoi(s) : 90;

	return (size_t)(arch == 75 ? 64 : arch == 80 || arch == 87 ? 163
	       : arch / 10 == 8 || arch / 10 == 12 ? 99 : 227) << 10;
}

enum { ARGUMENTS = 32764 };             /* bytes, of CUDA 12.1 and later */

/* CKR_EMULATE_LAUNCHES=FILE: a line for each launch. */
EMU_UNSEEN inline void
log_launch(const char *name, int64_t blocks)
{
	static const char *path = getenv("CKR_EMULATE_LAUNCHES");
	FILE *f = path ? fopen(path, "a") : NULL;

	if (!f)
		return;
	fprintf(f, "%s\t%lld\n", name, (long long)blocks);
	fclose(f);
}

/* The limits of a launch; blocks and threads are as the kernel's host gave
 * them. */
inline void
check_launch(const char *name, const void *kernel, int64_t blocks,
             int64_t threads, size_t shared, size_t arguments)
{
	size_t asked = asked_by(kernel)->bytes, most = asked ? asked : UNASKED;

	log_launch(name, blocks);
	if (arguments > ARGUMENTS) {
		fprintf(stderr, "emulated GPU: %s: %zu bytes of arguments, of "
		        "which %d are allowed\n", name, arguments, ARGUMENTS);
		abort();
	}

	if (blocks < 1 || blocks > INT32_MAX || threads < 1 || threads > 1024
	    || shared > most) {
		fprintf(stderr, "emulated GPU: %s: a launch of %lld blocks of "
		        "%lld threads and %zu bytes of dynamic shared memory, "
		        "of which %zu are allowed\n", name, (long long)blocks,
		        (long long)threads, shared, most);
		abort();
	}
}

static ElfW(Addr) symbol_at;
static const char *symbol_name;

EMU_UNSEEN inline void
match_symbol(const ElfW(Sym) *s, const char *names)
{
	if ((s->st_info & 15) == STT_FUNC && s->st_value == symbol_at)
		symbol_name = names + s->st_name;
}

/* Registers of a thread by the log of `nvcc -Xptxas=-v` for the same model.
 * Its kernels have the names of ours, but for the L of what is static.  0: the
 * log has no such kernel. */
EMU_UNSEEN inline unsigned
find_registers(const void *kernel, const char *path)
{
	static char *log;
	char line[4096];
	const char *at;

	log = log ? log : read_file(path);
	symbol_at = (uintptr_t)kernel - library;
	symbol_name = NULL;
	each_symbol(match_symbol);
	if (!log || !symbol_name)
		return 0;
	snprintf(line, sizeof line, "entry function '_Z%s'",
	         symbol_name + (strncmp(symbol_name, "_ZL", 3) ? 2 : 3));
	at = strstr(log, line);
	at = at ? strstr(at, "Used ") : NULL;
	return at ? (unsigned)atoi(at + 5) : 0;
}

/* CKR_EMULATE_REGISTERS=LOG: a block may have the registers of a
 * multiprocessor.  Each warp has a multiple of 256, and warps come in
 * fours, as NVIDIA's occupancy calculator has them from 8.0 to 12.0. */
EMU_UNSEEN inline void
check_registers(const char *name, const void *kernel, unsigned threads)
{
	enum { REGISTERS = 65536 };
	const char *path = getenv("CKR_EMULATE_REGISTERS");
	asked *a = asked_by(kernel);
	unsigned warps = (threads + 127) / 128 * 4, all;

	if (!path)
		return;
	if (!a->registers)
		a->registers = find_registers(kernel, path);
	all = warps * ((a->registers + 7) / 8 * 256);
	if (all > REGISTERS || !all) {
		fprintf(stderr, "emulated GPU: %s: %u threads of %u registers "
		        "take %u of %u\n", name, threads, a->registers, all,
		        REGISTERS);
		abort();
	}
}

/* Of the thread that runs kernels. */
EMU_UNSEEN inline void
begin_launch(const char *name, const void *kernel, unsigned threads,
             size_t shared)
{
	static thread_local uintptr_t at;
	static size_t bytes;
	const char *races = getenv("CKR_EMULATE_RACES");

	if (!at) {
		*(volatile unsigned char *)dynamic = 0;
		dl_iterate_phdr(find_shared, &bytes);
		at = shared_at;
	}
	if (!cells) {
		cells = (cell *)calloc(bytes / GRAIN + 1, sizeof *cells);
		each_symbol(add_variable);
	}
	check_registers(name, kernel, threads);
	shared_at = at;
#ifdef __SANITIZE_THREAD__
	shared_bytes = races && !strcmp(races, "0") ? 0 : bytes;
#endif
	kernel_name = name;
	launch_number++;
	dynamic_bytes = shared;
	static_bytes = 0;
	/* the attribute is about dynamic memory alone */
	most_bytes = asked_by(kernel)->bytes ? block_limit() : UNASKED;
}

EMU_UNSEEN inline void
end_launch()
{
	shared_bytes = 0;
}

EMU_UNSEEN inline void
begin_block(unsigned i)
{
	now_block = i;
	block_began = ++now;
}

#pragma GCC pop_options

}

/* ---- what -fsanitize=thread calls ---- */

#define EMU_SEE(name, n, how) \
	extern "C" EMU_UNSEEN __attribute__((optimize("O2"))) void \
	__tsan_##name(void *p) \
	{ \
		emu::touch(p, n, emu::how, __builtin_return_address(0)); \
	}
#define EMU_SEE_BOTH(n) \
	EMU_SEE(read##n, n, READ) \
	EMU_SEE(write##n, n, WRITE) \
	EMU_SEE(unaligned_read##n, n, READ) \
	EMU_SEE(unaligned_write##n, n, WRITE)
EMU_SEE(read1, 1, READ)
EMU_SEE(write1, 1, WRITE)
EMU_SEE_BOTH(2)
EMU_SEE_BOTH(4)
EMU_SEE_BOTH(8)
EMU_SEE_BOTH(16)

extern "C" EMU_UNSEEN void
__tsan_read_range(void *p, size_t n)
{
	emu::touch(p, n, emu::READ, __builtin_return_address(0));
}

extern "C" EMU_UNSEEN void
__tsan_write_range(void *p, size_t n)
{
	emu::touch(p, n, emu::WRITE, __builtin_return_address(0));
}

extern "C" EMU_UNSEEN void
__tsan_init()
{
}

#endif
