/* NVIDIA's libraries, wherever they were installed. */
#ifndef RUNTIME_SUPPORT_GPU_LIBRARY_H
#define RUNTIME_SUPPORT_GPU_LIBRARY_H

#include <stdio.h>

/* Open the first of these libraries that is there: on the loader's path, else
 * in the toolkit's folders (CUDA_HOME, CUDA_PATH, /usr/local/cuda), else in
 * NVIDIA's Python packages (of an active environment, of python3, of the user).
 * CKR_GPU_LIBRARIES=DIR:... names other folders than these, or none.
 * names ends with NULL.  NULL: there is none, and dlerror says more. */
void *gpu_library_open(const char *const *names);
/* Write the folders that gpu_library_open searches, in order: patterns as the
 * shell has them, with commas between them. */
void gpu_library_folders(FILE *);
/* Its file; "" if that is unknown.  Valid until the library is closed. */
const char *gpu_library_file(void *library);

#endif
