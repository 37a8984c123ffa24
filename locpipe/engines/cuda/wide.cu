// Tiles of pairs for many features, dot products and masks: what cuBLAS leaves to be done.
//
// The first product (or `squared_differences`) fills a tile, `tile_weights` turns it into weights in
// place, and the second product takes them to the values.  Comes after profiles.cu.

constexpr int THREADS = 128;
constexpr int SIDE = 16;

// Sums of squared (q_j - k_j) / scale_j, feature after feature, rounded as in plain loops.
__global__ void squared_differences(const double* queries, const double* keys, const double* scale,
                                    int n, int m, int d, double* tile) {
  __shared__ double q[SIDE * SIDE], k[SIDE * SIDE], h[SIDE];
  int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
  long long row = (long long)blockIdx.y * SIDE, column = (long long)blockIdx.x * SIDE;
  double total = 0;
  for (int first = 0; first < d; first += SIDE) {
    bool feature = first + x < d;
    __syncthreads();
    q[y * SIDE + x] = feature && row + y < n ? queries[(row + y) * d + first + x] : 0;
    k[y * SIDE + x] = feature && column + y < m ? keys[(column + y) * d + first + x] : 0;
    if (y == 0) h[x] = feature ? scale[first + x] : 1;
    __syncthreads();
    for (int j = 0; j < SIDE; ++j) {
      double gap = (q[y * SIDE + j] - k[x * SIDE + j]) / h[j];
      total += gap * gap;
    }
  }
  if (row + y < n && column + x < m) tile[(row + y) * m + column + x] = total;
}

// The block's largest number or sum, by a tree in shared memory; all threads get it.
template <bool LARGEST>
__device__ double over_block(double mine, double* shared) {
  __syncthreads();
  shared[threadIdx.x] = mine;
  for (int step = THREADS / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x >= step) continue;
    double other = shared[threadIdx.x + step];
    shared[threadIdx.x] = LARGEST ? fmax(shared[threadIdx.x], other) : shared[threadIdx.x] + other;
  }
  __syncthreads();
  return shared[0];
}

// Squared distance in bandwidths of a pair.  With norms the tile holds products of centred rows.
template <typename T>
__device__ T distance(T entry, const T* q_norms, const T* k_norms, long long row, int j,
                      double factor) {
  double u2 = entry;
  if (q_norms) u2 = fmax(double(q_norms[row] + k_norms[j] - T(2) * entry), 0.0);
  return T(fmin(u2 / factor / factor, sizeof(T) == 4 ? 1e30 : 1e305));
}

// One block per query.  Weights in place at exp(largest), their sum and the sum of their squares.
// A pair counts where the ids differ and the key's time, first_time + j, is in oldest .. newest.
template <int PROFILE, typename T>
__global__ void tile_weights(T* tile, const T* q_norms, const T* k_norms,
                             const double* q_bandwidths, const double* k_bandwidths,
                             const double* key_log, const long long* q_ids, const long long* k_ids,
                             const long long* oldest, const long long* newest,
                             long long first_time, double last, double nu, double power, int m,
                             double* largest, double* mass, double* squares) {
  __shared__ double shared[THREADS];
  long long row = blockIdx.x;
  T* entries = tile + row * m;
  double own = last * (q_bandwidths ? q_bandwidths[row] : 1.0);
  double top = no_weight<double>();
  for (int j = threadIdx.x; j < m; j += THREADS) {
    T log_w = entries[j];
    if constexpr (PROFILE != DOT) {
      double factor = fmax(own * (k_bandwidths ? k_bandwidths[j] : 1.0), 1e-300);
      T u2 = distance(entries[j], q_norms, k_norms, row, j, factor);
      log_w = log_weight<PROFILE>(u2, Shape{nu, power});
    }
    if (key_log) log_w += T(key_log[j]);
    bool seen = !q_ids || q_ids[row] != k_ids[j];
    if (newest) seen = seen && first_time + j <= newest[row] && first_time + j >= oldest[row];
    log_w = seen ? log_w : no_weight<T>();
    entries[j] = log_w;
    top = fmax(top, double(log_w));
  }
  top = over_block<true>(top, shared);
  T shift = top > no_weight<double>() ? T(top) : T(0);
  double sum = 0, sum_of_squares = 0;
  for (int j = threadIdx.x; j < m; j += THREADS) {
    T w = exp(entries[j] - shift);
    entries[j] = w;
    sum += w;
    sum_of_squares += double(w) * double(w);
  }
  sum = over_block<false>(sum, shared);
  sum_of_squares = over_block<false>(sum_of_squares, shared);
  if (threadIdx.x > 0) return;
  largest[row] = top;
  mass[row] = sum;
  squares[row] = sum_of_squares;
}
