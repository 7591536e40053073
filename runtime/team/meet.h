/* Processes that only know the address of the first one come to have a
 * connection each to all others. */
#ifndef CKR_MEET_H
#define CKR_MEET_H

#include <stddef.h>
#include <stdint.h>

/* What a process tells the others of itself. */
struct meet_card {
	uint32_t magic, rank, size, port;
	unsigned char address[16];      /* IPv6, or IPv4 in it, as the first
	                                 * process sees it */
	char host[96];                  /* equal on one machine */
	int64_t pid;
	int32_t word;                   /* number of an open file of its, whose
	                                 * first word it counts */
};

/* Connections to all ranks but this one, into fd[size]; what they say, into
 * card[size], of which this one's has `host`, `pid` and `word`.  Returns NULL,
 * or in words why it is not so after so many seconds, written to buf.
 * From the environment: MASTER_ADDR and MASTER_PORT. */
const char *meet(uint32_t rank, uint32_t size, double timeout, int *fd,
                 struct meet_card *card, char *buf, size_t nbuf);

#endif
