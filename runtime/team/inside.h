/* Internals of a process group, shared by the files of this folder. */
#ifndef RUNTIME_TEAM_INSIDE_H
#define RUNTIME_TEAM_INSIDE_H

#include "runtime/team/heartbeat.h"
#include "runtime/team/process_group.h"

struct local_peer {
	unsigned beat;                  /* its heartbeat when last read */
	double silent;                  /* seconds without a heartbeat while
	                                 * this process waited */
};

struct open_group {
	struct process_group team;
	const struct ckr_transport *transport;
	struct transport_place place;
	struct heartbeat *heartbeat;
	double timeout;                 /* seconds */
	int users;                      /* calls of pg_open not yet closed */
	struct local_peer *local;       /* [place.nlocal] */
	bool *answered;                 /* [size]: replied to a query */
	int *count, *at;                /* [size]: of pg_allgather_equal */
	struct open_group *failed;      /* an earlier group that failed to
	                                 * open */
};

#endif
