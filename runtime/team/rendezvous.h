/* Rendezvous: connects all processes of a run, which only know the address of
 * the first one. */
#ifndef RUNTIME_TEAM_RENDEZVOUS_H
#define RUNTIME_TEAM_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

/* What a process sends the others about itself. */
struct rendezvous_card {
	uint32_t magic, rank, size, port;
	unsigned char address[16];      /* IPv6 address, or mapped IPv4, as the
	                                 * first process sees it */
	char host[96];                  /* equal on one machine */
	int64_t pid;
	int32_t heartbeat_fd;           /* descriptor, in process pid, of a file
	                                 * whose first word is the heartbeat */
};

/* Connect to all other ranks: connections into fd[size], their cards into
 * card[size].  The caller sets `host`, `pid` and `heartbeat_fd` of its own
 * card.  Returns NULL, or after at most `timeout` seconds the reason of a
 * failure, written to buf.  Reads MASTER_ADDR and MASTER_PORT from the
 * environment. */
const char *rendezvous(uint32_t rank, uint32_t size, double timeout, int *fd,
                       struct rendezvous_card *card, char *buf, size_t nbuf);

#endif
