#include "runtime/team/same_launcher.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The state follows a name in parentheses, which may hold any. */
static char
state_of(long pid)
{
	char path[64], text[512] = "", *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		*text = '\0';
	fclose(f);
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : 0;
}

/* Among those that a thread of the parent has started. */
static long
find_stopped(long parent, const char *thread)
{
	char path[400];
	long pid, found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/task/%s/children", parent,
	         thread);
	f = fopen(path, "r");
	while (f && !found && fscanf(f, "%ld", &pid) == 1)
		if (state_of(pid) == 'T')
			found = pid;
	if (f)
		fclose(f);
	return found;
}

long
same_launcher_stopped(void)
{
	long parent = getppid(), found = 0;
	char path[64];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/task", parent);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir)))
		if (*d->d_name != '.')
			found = find_stopped(parent, d->d_name);
	if (dir)
		closedir(dir);
	return found;
}
