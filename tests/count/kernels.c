// Each kernel is one region that runs twice: once over half of what the second run gets. The test has their closed forms.
// Arrays are aligned to pages, so that none shares a cache line with another.
#define NOINLINE __attribute__((noinline))
#define ALIGNED __attribute__((aligned(4096)))
#define N 4096
#define D 64
#define BLOCK 8

double x[N] ALIGNED, y[N] ALIGNED, z[N] ALIGNED;
float u[N] ALIGNED, v[N] ALIGNED;
double a[D * D] ALIGNED, b[D * D] ALIGNED, c[D * D] ALIGNED;
int index_of[N] ALIGNED, whole[N] ALIGNED;
struct link { struct link *next; long filler[7]; } links[N] ALIGNED;
struct link *volatile end;
volatile double total;

static NOINLINE void daxpy(double s, int n) {
    for (int i = 0; i < n; i++)
        y[i] += s * x[i];
}
static NOINLINE void saxpy(float s, int n) {
    for (int i = 0; i < n; i++)
        v[i] += s * u[i];
}
static NOINLINE void dgemv(int rows) {
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int j = 0; j < D; j++)
            sum += a[D * i + j] * x[j];
        y[i] = sum;
    }
}
static NOINLINE void dgemm(int rows) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < D; j++) {
            double sum = 0;
            for (int k = 0; k < D; k++)
                sum += a[D * i + k] * b[D * k + j];
            c[D * i + j] = sum;
        }
}
static NOINLINE void blocked(int rows) {
    for (int i0 = 0; i0 < rows; i0 += BLOCK)
        for (int k0 = 0; k0 < D; k0 += BLOCK)
            for (int j0 = 0; j0 < D; j0 += BLOCK)
                for (int i = i0; i < i0 + BLOCK; i++)
                    for (int k = k0; k < k0 + BLOCK; k++)
                        for (int j = j0; j < j0 + BLOCK; j++)
                            c[D * i + j] += a[D * i + k] * b[D * k + j];
}
static NOINLINE void stencil(int rows) {
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j < D - 1; j++)
            b[D * i + j] = 0.25 * (a[D * (i - 1) + j] + a[D * (i + 1) + j] + a[D * i + j - 1] + a[D * i + j + 1]) - a[D * i + j];
}
static NOINLINE void triad(double s, int n) {
    for (int i = 0; i < n; i++)
        z[i] = x[i] + s * y[i];
}
static NOINLINE void gather(int n) {
    for (int i = 0; i < n; i++)
        y[i] = x[index_of[i]];
}
static NOINLINE void chase(int n) {
    struct link *p = links;
    for (int i = 0; i < n; i++)
        p = p->next;
    end = p;
}
static NOINLINE void roots(int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += __builtin_sqrt(x[i]) / (x[i] + 1);
    total = sum;
}
static NOINLINE void integers(int n) {
    for (int i = 0; i < n; i++)
        whole[i] = whole[i] * 3 + index_of[i];
}
// Only reads, and only writes, more than the cache holds.
static NOINLINE void reads(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += links[i].filler[0];
    total = (double)sum;
}
static NOINLINE void writes(long s, int n) {
    for (int i = 0; i < n; i++)
        links[i].filler[1] = s;
}

static void run(int half) {
    int n = N / half;
    daxpy(3, n);
    saxpy(3, n);
    dgemv(D / half);
    dgemm(D / half);
    blocked(D / half);
    // Both runs inside the matrix.
    stencil((D - 2) / half);
    triad(3, n);
    gather(n);
    chase(n);
    roots(n);
    integers(n);
    reads(n);
    writes(n, n);
}
int main(void) {
    for (int i = 0; i < N; i++) {
        x[i] = i;
        u[i] = (float)i;
        a[i] = i % 17;
        index_of[i] = i * 5 % N;
        links[i].next = &links[(i * 9 + 7) % N];
    }
    run(2);
    run(1);
}
