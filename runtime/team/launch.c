#include "runtime/team/launch.h"

#include <stddef.h>
#include <stdlib.h>

#include "runtime/support/number.h"

/* Variables with a process's number and how many there are.  One that was
 * started alone is as if nobody had. */
static const struct {
	const char *rank, *size, *only_with;
} launcher[] = {
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL },
	{ "PMI_RANK", "PMI_SIZE", NULL },
	/* SLURM sets the others for a job's script too */
	{ "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID" },
	{ "PMIX_RANK", NULL, NULL },
	{ "RANK", "WORLD_SIZE", "MASTER_ADDR" },
};

enum { COUNT = sizeof(launcher) / sizeof(*launcher), TORCH = COUNT - 1 };

static bool
read_launcher(int i, struct launch *l)
{
	const char *rank = getenv(launcher[i].rank);
	const char *size = launcher[i].size ? getenv(launcher[i].size) : NULL;
	uint64_t r, n = 0;

	if ((launcher[i].only_with && !getenv(launcher[i].only_with))
	    || !rank || !number_whole(rank, UINT32_MAX, &r)
	    || (launcher[i].size
	        && (!size || !number_whole(size, UINT32_MAX, &n))))
		return false;
	*l = (struct launch){ .torch = i == TORCH, .rank = (uint32_t)r,
		.size = (uint32_t)n, .size_by = launcher[i].size };
	if (n != 1)
		l->by = launcher[i].rank;
	return true;
}

struct launch
launch_find(void)
{
	struct launch l = { .size = 1 };

	int i = 0;

	while (i < COUNT && !read_launcher(i, &l))
		i++;
	/* all of them are set, so a run alone is not meant */
	if (i == COUNT && getenv(launcher[TORCH].rank)
	    && getenv(launcher[TORCH].size)
	    && getenv(launcher[TORCH].only_with))
		l = (struct launch){ .by = launcher[TORCH].rank, .torch = true,
			.size = 1, .wrong = true };
	return l;
}
