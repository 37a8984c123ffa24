// Sums over keys for few features: distances, weights and sums stay in registers.
//
// A thread owns ROWS queries; a block walks over its share of the keys, TILE at a time in shared
// memory.  blockIdx.y counts the shares, each of which has sums of its own, so that few queries
// fill a device too; the host adds the shares in order and nothing depends on timing.
// Comes after profiles.cu.

constexpr int THREADS = 128;
constexpr int ROWS = 2;
constexpr int TILE = 128;
constexpr int FLUSH = 32;  // float sums of so many terms go into double

template <typename T>
struct Limits;
template <>
struct Limits<float> {
  static constexpr float smallest = 1e-30f, largest = 1e30f;
};
template <>
struct Limits<double> {
  static constexpr double smallest = 1e-300, largest = 1e305;
};

// How the coordinates make a distance.  `scale` holds 1 / h_j^2; with the uniform kernel it holds
// h_j, since the edge of a ball must fall where plain divisions put it.  Where bandwidths ride in
// the rows, h_j is by `last`, which divides with them.
template <int PROFILE, int D, typename T>
struct Metric {
  T scale[D];
  T last;
  bool divides;

  __device__ T squared(const T (&q)[D], const T* k, T q_bandwidth, T k_bandwidth) const {
    T u2 = 0;
#pragma unroll
    for (int j = 0; j < D; ++j) {
      T gap = q[j] - k[j];
      if constexpr (PROFILE == UNIFORM) {
        gap /= scale[j];
        u2 += gap * gap;
      } else {
        u2 = fma(gap * scale[j], gap, u2);
      }
    }
    if (divides) {
      T factor = fmax(last * q_bandwidth * k_bandwidth, Limits<T>::smallest);
      u2 = u2 / factor / factor;
    }
    return fmin(u2, Limits<T>::largest);
  }
};

// What a block's threads read together: coordinates (padded to D), bandwidths and what rides along.
template <int D, int V, typename T>
struct Keys {
  T x[TILE * D];
  T bandwidth[TILE];
  T weight[TILE];  // float: the sample weight; double: its log
  T values[TILE * (V > 0 ? V : 1)];

  __device__ void load(const T* keys, const T* bandwidths, const T* weights, const T* all_values,
                       long long first, int count, int d) {
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += THREADS) {
      long long row = first + i;
#pragma unroll 1
      for (int j = 0; j < D; ++j) x[i * D + j] = j < d ? keys[row * d + j] : T(0);
      bandwidth[i] = bandwidths ? bandwidths[row] : T(1);
      weight[i] = weights ? weights[row] : T(sizeof(T) == 4 ? 1 : 0);
      for (int v = 0; v < V; ++v) values[i * V + v] = all_values[row * V + v];
    }
  }
};

template <int D, typename T>
struct Query {
  T x[D];
  T bandwidth;
  T shift;

  __device__ void load(const T* queries, const T* bandwidths, const double* shifts, int row, int n,
                       int d) {
    bool inside = row < n;
    for (int j = 0; j < D; ++j) x[j] = inside && j < d ? queries[(long long)row * d + j] : T(0);
    bandwidth = inside && bandwidths ? bandwidths[row] : T(1);
    shift = inside && shifts ? T(shifts[row]) : T(0);
  }
};

// Credits say whether float was good enough: a pair earns where its relative error keeps the
// tolerance, and pays where it does not.  One for the mass, one for the squares or each value.
template <int V, typename T>
struct Sums {
  static constexpr int N = V > 0 ? V : 1;
  T mass, moment[N];
  float credit[N + 1];

  __device__ void clear() {
    mass = 0;
    credit[0] = 0;
    for (int v = 0; v < N; ++v) moment[v] = credit[v + 1] = 0;
  }

  __device__ void add(T w, const T* values) {
    mass += w;
#pragma unroll
    for (int v = 0; v < N; ++v) moment[v] = fma(w, V > 0 ? values[v] : w, moment[v]);
  }

  __device__ void earn(float w, float slope, float allowance, float rate, const float* values) {
    float earned = fma(-rate, slope, allowance * w);
    credit[0] += earned;
#pragma unroll
    for (int v = 0; v < N; ++v) {
      float gain = V > 0 ? earned : 2.0f * earned - allowance * w;
      credit[v + 1] = fma(gain, V > 0 ? fabsf(values[v]) : w, credit[v + 1]);
    }
  }

  template <typename S>
  __device__ void take(const Sums<V, S>& part) {
    mass += part.mass;
    credit[0] += part.credit[0];
    for (int v = 0; v < N; ++v) {
      moment[v] += part.moment[v];
      credit[v + 1] += part.credit[v + 1];
    }
  }
};

template <int PROFILE, int D, typename T>
__device__ Metric<PROFILE, D, T> make_metric(const T* scale, double last, bool divides) {
  Metric<PROFILE, D, T> metric;
  for (int j = 0; j < D; ++j) metric.scale[j] = scale[j];
  metric.last = T(last);
  metric.divides = divides;
  return metric;
}

// Largest log weight of each query over its share of the keys (n_shares, n).
template <int PROFILE, int D>
__global__ void row_max(const double* queries, const double* keys, const double* q_bandwidths,
                        const double* k_bandwidths, const double* key_log, const double* scale,
                        double last, int divides, double nu, double power, int n, int m, int d,
                        int share, double* largest) {
  __shared__ Keys<D, 0, double> tile;
  auto metric = make_metric<PROFILE, D>(scale, last, divides);
  Query<D, double> query[ROWS];
  double top[ROWS];
  int row = blockIdx.x * (THREADS * ROWS) + threadIdx.x;
  for (int r = 0; r < ROWS; ++r) {
    query[r].load(queries, q_bandwidths, nullptr, row + r * THREADS, n, d);
    top[r] = no_weight<double>();
  }
  long long begin = (long long)blockIdx.y * share;
  long long end = begin + share < m ? begin + share : m;
  for (long long first = begin; first < end; first += TILE) {
    int count = end - first < TILE ? int(end - first) : TILE;
    __syncthreads();
    tile.load(keys, k_bandwidths, key_log, nullptr, first, count, d);
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < count; ++i)
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        double u2 = metric.squared(query[r].x, tile.x + i * D, query[r].bandwidth,
                                   tile.bandwidth[i]);
        double log_w = log_weight<PROFILE>(u2, Shape{nu, power}) + tile.weight[i];
        top[r] = fmax(top[r], log_w);
      }
  }
  for (int r = 0; r < ROWS; ++r) {
    int i = row + r * THREADS;
    if (i < n) largest[(long long)blockIdx.y * n + i] = top[r];
  }
}

// Sums of weights, and of weights times V values (V = 0: times the weights themselves).
// float: plain weights, and the credits of each row (1 + max(V, 1)).  double: weights at exp(shift).
template <int PROFILE, int D, int V, typename T>
__global__ void row_sums(const T* queries, const T* keys, const T* values, const T* q_bandwidths,
                         const T* k_bandwidths, const T* key_weights, const double* shifts,
                         const T* scale, double last, int divides, double nu, double power,
                         double allowance, double rate, int n, int m, int d, int share,
                         double* mass, double* moment, float* credits) {
  __shared__ Keys<D, V, T> tile;
  auto metric = make_metric<PROFILE, D>(scale, last, divides);
  Query<D, T> query[ROWS];
  Sums<V, double> sums[ROWS];
  int row = blockIdx.x * (THREADS * ROWS) + threadIdx.x;
  for (int r = 0; r < ROWS; ++r) {
    query[r].load(queries, q_bandwidths, shifts, row + r * THREADS, n, d);
    sums[r].clear();
  }
  long long begin = (long long)blockIdx.y * share;
  long long end = begin + share < m ? begin + share : m;
  for (long long first = begin; first < end; first += TILE) {
    int count = end - first < TILE ? int(end - first) : TILE;
    __syncthreads();
    tile.load(keys, k_bandwidths, key_weights, values, first, count, d);
    __syncthreads();
    for (int from = 0; from < count; from += FLUSH) {
      int to = from + FLUSH < count ? from + FLUSH : count;
      Sums<V, T> part[ROWS];
      for (int r = 0; r < ROWS; ++r) part[r].clear();
#pragma unroll 1
      for (int i = from; i < to; ++i)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          T u2 = metric.squared(query[r].x, tile.x + i * D, query[r].bandwidth, tile.bandwidth[i]);
          const T* value = tile.values + i * V;
          if constexpr (sizeof(T) == 4) {
            Weight w = weight<PROFILE>(u2, Shape{nu, power});
            float by = tile.weight[i];
            part[r].add(by * w.value, value);
            part[r].earn(by * w.value, by * w.slope, allowance, rate, value);
          } else {
            double log_w = log_weight<PROFILE>(u2, Shape{nu, power}) + tile.weight[i];
            part[r].add(exp(log_w - query[r].shift), value);
          }
        }
      for (int r = 0; r < ROWS; ++r) sums[r].take(part[r]);
    }
  }
  for (int r = 0; r < ROWS; ++r) {
    int i = row + r * THREADS;
    if (i >= n) continue;
    long long at = (long long)blockIdx.y * n + i;
    constexpr int N = Sums<V, T>::N;
    mass[at] = sums[r].mass;
    for (int v = 0; v < N; ++v) moment[at * N + v] = sums[r].moment[v];
    if constexpr (sizeof(T) == 4)
      for (int v = 0; v <= N; ++v) credits[at * (N + 1) + v] = sums[r].credit[v];
  }
}
