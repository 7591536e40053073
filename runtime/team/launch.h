/* How this process was started: alone, or by a launcher as one of several,
 * according to the environment variables that launchers set. */
#ifndef RUNTIME_TEAM_LAUNCH_H
#define RUNTIME_TEAM_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct launch {
	const char *by;                 /* variable with the rank; NULL: none */
	bool torch;                     /* a launcher without MPI: torchrun */
	uint32_t rank, size;            /* size 0: unknown */
	const char *size_by;            /* variable with the size */
	bool wrong;                     /* a variable is not a number */
};

struct launch launch_find(void);

#endif
