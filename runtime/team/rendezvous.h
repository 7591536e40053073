/* Rendezvous: connects all processes of a run, which only know the address of
 * the first one. */
#ifndef RUNTIME_TEAM_RENDEZVOUS_H
#define RUNTIME_TEAM_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

/* What a process sends the others about itself. */
struct rendezvous_card {
	uint32_t magic, rank, size, port;
	unsigned char address[16];      /* IPv6, or IPv4 in it, as the first
	                                 * process sees it */
	char host[96];                  /* equal on one machine */
	int64_t pid;
	int32_t heartbeat_fd;           /* a file of its, whose first word is
	                                 * its heartbeat */
};

/* Connections to all ranks but this one, into fd[size]; their cards into
 * card[size], of which this one's has `host`, `pid` and `heartbeat_fd`.
 * Returns NULL, or the reason for a failure within so many seconds, written to
 * buf.
 * From the environment: MASTER_ADDR and MASTER_PORT. */
const char *rendezvous(uint32_t rank, uint32_t size, double timeout, int *fd,
                       struct rendezvous_card *card, char *buf, size_t nbuf);

#endif
