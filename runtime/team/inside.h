/* Internals of a process group, shared by the files of this folder. */
#ifndef RUNTIME_TEAM_INSIDE_H
#define RUNTIME_TEAM_INSIDE_H

#include "runtime/team/heartbeat.h"
#include "runtime/team/process_group.h"

struct local_peer {
	unsigned beat;                  /* last seen */
	double silent;                  /* seconds, of those spent waiting */
};

struct open_group {
	struct process_group team;
	const struct ckr_link *link;
	struct link_place place;
	struct heartbeat *heartbeat;
	double timeout;                 /* seconds */
	int users;
	struct local_peer *local;       /* [place.nlocal] */
	bool *answered;                 /* [size] */
	int *count, *at;                /* [size] */
	struct open_group *failed;      /* the one that failed to open before */
};

#endif
