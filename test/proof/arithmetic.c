/* What arithmetic.sh checks: the library's own files, after their contracts. */
#include "arithmetic.h"

#include "base/nanos.h"
#include "core/quorum.h"
#include "core/validity.c"
#include "wire/fence.h"
