/* The machines that ckc compiles for: one row each.
 *
 * A machine is a target, its emitter, the compiler of its code, and its own
 * options of ckc.  Its other room is a device in runtime/device.
 */
#ifndef CODEGEN_MACHINE_H
#define CODEGEN_MACHINE_H

#include <stdbool.h>

/* An option of ckc with a text as its value. */
struct machine_option {
	const char *name, *arg;         /* "--NAME ARG" */
	const char *value;              /* the default */
	const char *help;
	bool (*accepts)(const char *value);     /* NULL: any text */
	const char *expected;           /* by `accepts`, for messages */
	bool checked;                   /* it matters without code, too: plans
	                                 * and `ckc inspect` take it */
};

/* What the options of a machine are for. */
enum { MACHINE_COMPILER, MACHINE_ARCH, MACHINE_OPTIONS };

struct machine {
	const char *name;               /* for --target; NULL: end of table */
	const char *text;               /* "an NVIDIA GPU" */
	const struct target *target;
	const struct target_emitter *emitter;
	const struct compiler *compiler;
	const char *device;             /* default profile; NULL: "cpu" */
	struct machine_option option[MACHINE_OPTIONS];
};

/* The first one is the default, and this machine. */
extern const struct machine machines[];

#endif
