/* ckc doctor: lists the tools and libraries on this machine, and compiles and
 * trains a model of four lines.
 */
#include "frontend/driver/host.h"
#include "frontend/driver/verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "codegen/object_cache.h"
#include "ir/base/outfile.h"
#include "ir/text/text.h"
#include "passes/explore/explore.h"
#include "runtime/support/gpu_library.h"
#include "runtime/support/offload_dir.h"

extern char **environ;

static const char model[] =
	"graph @doctor {\n"
	"\tinput %x: f32[4,8]\n"
	"\tparam %w: f32[8,8] = splat 0.25\n"
	"\t%y = matmul %x, %w\n"
	"\t%loss output = reduce_mean %y {axes=[0,1], keepdims=0}\n"
	"}\n";

struct doctor {
	const struct cli *c;
	Arena *arena;
	Diag *diag;
	const char *dir;                /* folder of temporary files */
};

static void
print_item(const char *what, const char *text)
{
	printf("%-10s %s\n", what, text);
	fflush(stdout);
}

/* First line of a file in the folder; "" if there is none. */
static char *
read_first_line(const struct doctor *d, const char *name)
{
	char line[512] = "";
	FILE *f = fopen(arena_printf(d->arena, "%s/%s", d->dir, name), "r");

	if (f) {
		if (!fgets(line, sizeof line, f))
			line[0] = '\0';
		fclose(f);
	}
	line[strcspn(line, "\n")] = '\0';
	return arena_printf(d->arena, "%s", line);
}

/* Run a command with its output in file `said`.  Returns its exit status; -1:
 * cannot be started. */
static int
run_command(const struct doctor *d, const char *const *argv)
{
	const char *output = arena_printf(d->arena, "%s/said", d->dir);
	posix_spawn_file_actions_t to;
	int status = -1, error;
	pid_t pid;

	posix_spawn_file_actions_init(&to);
	posix_spawn_file_actions_addopen(&to, 1, output,
	                                 O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&to, 1, 2);
	error = posix_spawnp(&pid, argv[0], &to, NULL, (char *const *)argv,
	                     environ);
	posix_spawn_file_actions_destroy(&to);
	if (error)
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Version line of a program or a command with arguments; NULL: cannot be
 * run. */
static const char *
command_version(const struct doctor *d, const char *command)
{
	const char *text = arena_printf(d->arena, "%s --version", command);
	const char *argv[] = { "sh", "-c", text, NULL };

	return run_command(d, argv) == 0 ? read_first_line(d, "said") : NULL;
}

static bool
is_program(const struct doctor *d, const char *name)
{
	const char *text = arena_printf(d->arena, "command -v %s", name);
	const char *argv[] = { "sh", "-c", text, NULL };

	return run_command(d, argv) == 0;
}

static bool
compiles(const struct doctor *d)
{
	const struct options opt = {
		.optimizer = OPT_ADAMW, .grad_accum = 1, .budget_bytes = -1,
		.remat = REMAT_NONE, .threads = d->c->opt.threads,
	};
	Pass p = { .diag = d->diag, .opt = &opt, .target = machines->target,
	           .keep = d->arena };
	struct codegen_options o = cli_codegen(d->c, machines);
	Graph *g = text_parse("doctor", model, strlen(model), d->diag);
	bool ok;

	o.out_so = arena_printf(d->arena, "%s/doctor.so", d->dir);
	o.weights = arena_printf(d->arena, "%s/doctor.safetensors", d->dir);
	ok = g && explore(&p, g, NULL, NULL)
		&& codegen_library(&(struct codegen_schedules){
			.g = g, .plan = p.planned.plan }, &o, d->diag);

	graph_free(p.planned.reference);
	graph_free(g);
	return ok;
}

static bool
check_compiler(const struct doctor *d)
{
	const char *cc = d->c->machine_option[0][MACHINE_COMPILER];
	const char *found = command_version(d, cc);
	bool ok;

	if (!found) {
		print_item("compiler", arena_printf(d->arena,
			"'%s' not found; try: apt-get install gcc libc6-dev, "
			"or --cc COMMAND", cc));
		return false;
	}
	ok = compiles(d);
	print_item("compiler", arena_printf(d->arena, "%s: %s", found,
		ok ? "builds libraries" : "cannot compile the code that ckc "
			"generates"));
	return ok;
}

static bool
check_runner(const struct doctor *d)
{
	const char *ckrun = host_runner(d->arena);
	const char *argv[] = {
		ckrun, arena_printf(d->arena, "%s/doctor.so", d->dir),
		"--feed", "x=ones", "--steps", "2", NULL
	};
	int status = run_command(d, argv);
	const char *output = read_first_line(d, "said");

	if (status < 0)
		output = "not found; install it next to ckc";
	else if (!strncmp(output, "doctor: ", 8))
		output += 8;
	print_item("ckrun", arena_printf(d->arena, "%s: %s%s", ckrun,
	           status == 0 ? "trains; " : "", output));
	return status == 0;
}

/* Print ckrun's build settings: lines "NAME: TEXT" after its version. */
static void
print_features(const struct doctor *d)
{
	const char *argv[] = { host_runner(d->arena), "--version", NULL };
	char line[512], *text;
	FILE *f = NULL;

	if (run_command(d, argv) == 0)
		f = fopen(arena_printf(d->arena, "%s/said", d->dir), "r");
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		text = strstr(line, ": ");
		if (text) {
			*text = '\0';
			print_item(line, text + 2);
		}
	}
	if (f)
		fclose(f);
}

static void
print_machine(const struct doctor *d)
{
	double page = (double)sysconf(_SC_PAGESIZE);

	print_item("machine", arena_printf(d->arena,
		"%ld processors, %.1f GiB of memory",
		sysconf(_SC_NPROCESSORS_ONLN),
		page * (double)sysconf(_SC_PHYS_PAGES) / (1 << 30)));
}

/* Whether either library can be loaded.  It stays loaded. */
static bool
has_library(const char *name, const char *older)
{
	return dlopen(name, RTLD_LAZY) || dlopen(older, RTLD_LAZY);
}

/* Functions of the driver that describe GPUs. */
struct driver {
	int (*init)(unsigned flags);
	int (*version)(int *);
	int (*device_count)(int *);
	int (*device_get)(int *device, int index);
	int (*device_name)(char *, int n, int device);
	int (*device_attribute)(int *, int attribute, int device);
};

static bool
load_driver(struct driver *d)
{
	void *dl = dlopen("libcuda.so.1", RTLD_LAZY);

	if (!dl) {
		print_item("GPU", "no driver: libraries for --target cuda "
		           "cannot run here");
		return false;
	}
	print_item("driver", gpu_library_file(dl));
	*(void **)&d->init = dlsym(dl, "cuInit");
	*(void **)&d->version = dlsym(dl, "cuDriverGetVersion");
	*(void **)&d->device_count = dlsym(dl, "cuDeviceGetCount");
	*(void **)&d->device_get = dlsym(dl, "cuDeviceGet");
	*(void **)&d->device_name = dlsym(dl, "cuDeviceGetName");
	*(void **)&d->device_attribute = dlsym(dl, "cuDeviceGetAttribute");
	return d->init && d->version && d->device_count && d->device_get
	       && d->device_name && d->device_attribute;
}

static void
print_device(const struct doctor *d, const struct driver *driver, int index)
{
	enum { COMPUTE_MAJOR = 75, COMPUTE_MINOR = 76 };
	int device = 0, major = 0, minor = 0;
	char name[128] = "";

	driver->device_get(&device, index);
	driver->device_name(name, sizeof name, device);
	driver->device_attribute(&major, COMPUTE_MAJOR, device);
	driver->device_attribute(&minor, COMPUTE_MINOR, device);
	print_item("GPU", arena_printf(d->arena, "%d: %s, sm_%d%d", index, name,
	                               major, minor));
}

/* Whether there is a driver. */
static bool
print_devices(const struct doctor *d)
{
	enum { NO_DEVICE = 100 };
	struct driver driver;
	int version = 0, n = 0, error;

	if (!load_driver(&driver))
		return false;
	driver.version(&version);
	print_item("driver", arena_printf(d->arena, "for CUDA %d.%d and older",
	                                  version / 1000, version % 1000 / 10));
	error = driver.init(0);
	if (error && error != NO_DEVICE)
		print_item("GPU", arena_printf(d->arena, "the driver cannot be "
			"initialized: error %d of cuInit", error));
	else if (error || driver.device_count(&n) || n == 0)
		print_item("GPU", "none found; CUDA_VISIBLE_DEVICES may hide "
		           "it");
	for (int i = 0; i < n; i++)
		print_device(d, &driver, i);
	return true;
}

/* Libraries that runs on a GPU need, and what happens without them. */
static void
print_gpu(const struct doctor *d)
{
	static const struct {
		const char *title, *names[4], *without;
	} library[] = {
		{ "cuBLASLt", { "libcublasLt.so.13", "libcublasLt.so.12" },
		  "matrix products cannot run" },
		{ "cuDNN", { "libcudnn.so.9", "libcudnn.so.8" },
		  "convolutions use im2col" },
		{ "NCCL", { "libnccl.so.2" },
		  "several processes cannot train together" },
	};
	bool missing = false;

	if (!print_devices(d))
		return;
	for (size_t i = 0; i < sizeof library / sizeof *library; i++) {
		void *dl = gpu_library_open(library[i].names);

		print_item(library[i].title, dl ? gpu_library_file(dl)
			: arena_printf(d->arena, "%s not found: %s",
			               library[i].names[0],
			               library[i].without));
		missing |= !dl;
	}
	if (missing) {
		printf("%-10s ", "searched");
		gpu_library_folders(stdout);
		putchar('\n');
	}
}

/* Where libraries for the CPU keep what --offload takes. */
static void
print_offload(const struct doctor *d)
{
	double room;
	bool memory = offload_dir_is_memory(OFFLOAD_DIR, &room);

	print_item("offload", arena_printf(d->arena,
		OFFLOAD_DIR ": %s%.1f GiB free; ckrun --offload-dir names "
		"another folder", memory ? "in memory (tmpfs), saves none; "
		: "", room / (1 << 30)));
}

static void
print_machine_compiler(const struct doctor *d, const struct machine *m)
{
	const char *version = command_version(d,
		d->c->machine_option[m - machines][MACHINE_COMPILER]);

	print_item(m->option[MACHINE_COMPILER].name, version ? version
	           : arena_printf(d->arena, "not found: needed for --target "
	                          "%s", m->name));
}

/* Programs and libraries that only some uses need. */
static void
print_optional(const struct doctor *d)
{
	const char *mpirun = command_version(d, "mpirun");
	const char *cache = object_cache_folder(d->arena);

	if (!has_library("libdnnl.so.3", "libdnnl.so.2"))
		print_item("oneDNN",
		           "not found: matrix products use OpenBLAS or ckc's "
		           "own kernel, convolutions use im2col; try: apt-get "
		           "install libdnnl2");
	print_item("mpirun", mpirun ? mpirun
	           : "not found: ranks of --tp and --dp run in one process or "
	           "under torchrun; try: apt-get install openmpi-bin");
	if (!is_program(d, "torchrun"))
		print_item("torchrun",
		           "not found: not needed with mpirun; try: pip "
		           "install torch");
	for (const struct machine *m = machines + 1; m->name; m++)
		print_machine_compiler(d, m);
	print_item("cache", cache ? cache : "off: units are compiled each "
	           "time; CKC_CACHE names a folder of yours that nobody else "
	           "writes to");
	print_offload(d);
	print_gpu(d);
}

static void
clean_up(const struct doctor *d)
{
	static const char *const name[] = {
		"doctor.so", "doctor.safetensors", "said"
	};

	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		unlink(arena_printf(d->arena, "%s/%s", d->dir, name[i]));
	rmdir(d->dir);
}

bool
verb_doctor(const struct cli *c, Arena *arena, Diag *diag)
{
	struct doctor d = { c, arena, diag, outfile_folder(arena, diag) };
	bool ok;

	if (!d.dir)
		return false;
	print_machine(&d);
	ok = check_compiler(&d) && check_runner(&d);
	print_features(&d);
	print_optional(&d);
	clean_up(&d);
	print_item("", ok ? "models can be compiled and trained here"
	           : "models cannot be compiled and trained here");
	return ok;
}
