/* How this process was started: alone, or by a launcher as one of several.
 *
 * Knows: what launchers put into the environment. */
#ifndef RUNTIME_TEAM_LAUNCH_H
#define RUNTIME_TEAM_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct launch {
	const char *by;                 /* variable that says so; NULL: alone */
	bool torch;                     /* by what knows of no MPI */
	uint32_t rank, size;            /* size 0: unknown */
	const char *size_by;            /* variable that has the size */
	bool wrong;                     /* what says so is no number */
};

struct launch launch_find(void);

#endif
