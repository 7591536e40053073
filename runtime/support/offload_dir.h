/* Where what is offloaded on the CPU lies. */
#ifndef RUNTIME_SUPPORT_OFFLOAD_DIR_H
#define RUNTIME_SUPPORT_OFFLOAD_DIR_H

#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/vfs.h>

/* Unless the user names another folder. */
#define OFFLOAD_DIR "/var/tmp"

/* Whether files in the folder are in memory; *room: bytes that new ones may
 * have, 0 if the folder cannot be asked. */
static inline bool
offload_dir_is_memory(const char *dir, double *room)
{
	struct statfs fs;

	*room = 0;
	if (statfs(dir, &fs))
		return false;
	*room = (double)fs.f_bavail * (double)fs.f_bsize;
	return fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
}

#endif
