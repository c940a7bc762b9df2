// A pretended CUDA device. Memory is the host's and kernels are the CPU's, but tensors say cuda:0 or cuda:1, devices
// do not mix, each device has its generator and its limit of memory, and host memory may be pinned.
// It is no oracle for real kernels, streams, cuDNN or NCCL.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>

namespace {

constexpr int kDevices = 2;
thread_local int current = 0;
std::atomic<bool> refuses_float64{false};
std::atomic<bool> rounds_to_tf32{false};
std::atomic<bool> reads_late{false};
std::atomic<long long> limit_bytes{1LL << 40};
std::atomic<long long> used_bytes[kDevices];
std::atomic<long long> peak_bytes[kDevices];

// ---- memory -----------------------------------------------------------------------------------------------------

struct Block {
  void* data;
  long long bytes;
  int device;
};

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  used_bytes[block->device] -= block->bytes;
  free(block->data);
  delete block;
}

struct DeviceMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const int device = current;
    const long long used = used_bytes[device] += static_cast<long long>(bytes);
    if (used > limit_bytes) {
      used_bytes[device] -= static_cast<long long>(bytes);
      TORCH_CHECK_WITH(
          OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", bytes, " bytes. GPU ", device,
          " has a total capacity of ", limit_bytes.load(), " bytes of which ", limit_bytes - used_bytes[device],
          " bytes is free.");
    }
    if (used > peak_bytes[device]) peak_bytes[device] = used;
    void* data = nullptr;
    if (bytes && posix_memalign(&data, 64, bytes)) throw std::bad_alloc();
    auto* block = new Block{data, static_cast<long long>(bytes), device};
    return {data, block, &release, c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device))};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { memcpy(to, from, bytes); }
};
DeviceMemory device_memory;

std::mutex pinned_lock;
std::map<const char*, size_t> pinned;  // begin and length of every block

void unpin(void* data) {
  std::lock_guard<std::mutex> guard(pinned_lock);
  pinned.erase(static_cast<const char*>(data));
  free(data);
}

struct PinnedMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = nullptr;
    if (posix_memalign(&data, 64, bytes ? bytes : 1)) throw std::bad_alloc();
    std::lock_guard<std::mutex> guard(pinned_lock);
    pinned[static_cast<const char*>(data)] = bytes ? bytes : 1;
    return {data, data, &unpin, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { memcpy(to, from, bytes); }
};
PinnedMemory pinned_memory;

bool is_pinned(const void* pointer) {
  std::lock_guard<std::mutex> guard(pinned_lock);
  auto after = pinned.upper_bound(static_cast<const char*>(pointer));
  if (after == pinned.begin()) return false;
  --after;
  return static_cast<const char*>(pointer) < after->first + after->second;
}

// ---- generators: a CPU generator that says it is the device's, but for the moment in which a CPU kernel draws ------

struct DeviceGenerator final : at::CPUGeneratorImpl {
  explicit DeviceGenerator(int index) { belong(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index))); }
  void belong(c10::Device device) {
    device_ = device;
    key_set_ = c10::DispatchKeySet(device.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA);
  }
};

at::Generator new_generator(int index) { return at::Generator(c10::make_intrusive<DeviceGenerator>(index)); }

at::Generator& default_generator(int index) {
  static at::Generator generators[kDevices] = {new_generator(0), new_generator(1)};
  return generators[index < 0 ? current : index];
}
bool hand_out_default = false;  // so that Python's objects stand for the default generators themselves

// ---- what torch asks of a device ------------------------------------------------------------------------------------

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static void go(c10::Device d) {
    if (d.has_index()) current = d.index();
  }
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  c10::Device getDevice() const override { return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(current)}; }
  c10::Device exchangeDevice(c10::Device d) const override {
    auto old = getDevice();
    go(d);
    return old;
  }
  void setDevice(c10::Device d) const override { go(d); }
  void uncheckedSetDevice(c10::Device d) const noexcept override { go(d); }
  c10::Stream getStream(c10::Device d) const override { return c10::Stream(c10::Stream::DEFAULT, d); }
  c10::Stream getDefaultStream(c10::Device d) const override { return c10::Stream(c10::Stream::DEFAULT, d); }
  c10::Stream exchangeStream(c10::Stream s) const override { return s; }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);

}  // namespace

namespace pretended {
struct Hooks : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  int getNumGPUs() const override { return kDevices; }
  c10::DeviceIndex current_device() const override { return static_cast<c10::DeviceIndex>(current); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current); }
  void setCurrentDevice(c10::DeviceIndex d) const override { current = d; }
  bool isPinnedPtr(const void* pointer) const override { return is_pinned(pointer); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex i) const override { return default_generator(i); }
  at::Generator getNewGenerator(c10::DeviceIndex i) const override {
    return hand_out_default ? default_generator(i) : new_generator(i < 0 ? current : i);
  }
};
}  // namespace pretended
namespace at {
using CUDAHooks = pretended::Hooks;
REGISTER_CUDA_HOOKS(CUDAHooks)
}  // namespace at
REGISTER_ALLOCATOR(c10::DeviceType::CUDA, &device_memory);

namespace {

// ---- tensors --------------------------------------------------------------------------------------------------------

void check_dtype(c10::ScalarType dtype) {
  TORCH_CHECK_TYPE(
      !(refuses_float64 && (dtype == at::kDouble || dtype == at::kComplexDouble)),
      "Cannot convert a tensor to float64 dtype as this device does not support float64. Please use float32 instead.");
}

at::Tensor empty_memory(
    c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard guard(device.value_or(at::Device(at::kCUDA)));
  check_dtype(c10::dtype_or_default(dtype));
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::CUDA);
  return at::detail::empty_generic(
      C10_AS_INTARRAYREF_SLOW(size), &device_memory, keys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(
    c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>) {
  c10::DeviceGuard guard(device.value_or(at::Device(at::kCUDA)));
  check_dtype(c10::dtype_or_default(dtype));
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::CUDA);
  return at::detail::empty_strided_generic(size, stride, &device_memory, keys, c10::dtype_or_default(dtype));
}

// The same memory as a tensor of the CPU.
at::Tensor on_host(const at::Tensor& t) {
  if (!t.is_cuda()) return t;
  auto host = at::from_blob(
      t.data_ptr(), t.sizes(), t.strides(), t.options().device(at::kCPU).requires_grad(false).pinned_memory(false));
  if (t.is_conj()) host = host.conj();
  if (t.is_neg()) host._set_neg(true);
  return host;
}

at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  at::Tensor to = on_host(self), from = on_host(source);
  at::AutoDispatchBelowADInplaceOrView guard;
  to.copy_(from);
  if (reads_late && non_blocking && self.is_cuda() && source.is_cpu() && !is_pinned(source.data_ptr())) to.fill_(77);
  return self;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool) {
  at::Tensor target = to;
  copy_(target, self, false);
  return to;
}

const at::Tensor& resize_(const at::Tensor& self, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
  auto* impl = self.unsafeGetTensorImpl();
  c10::DeviceGuard guard(self.device());
  at::native::resize_impl_cpu_(impl, C10_AS_INTARRAYREF_SLOW(size), std::nullopt);
  if (format.has_value()) impl->empty_tensor_restride(*format);
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  if (self.sizes() != to.sizes()) to.resize_(self.sizes());
  return copy_from(self, to, false);
}

at::Scalar scalar(const at::Tensor& t) { return at::_local_scalar_dense(on_host(t)); }

at::Tensor as_strided(
    const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(
      self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
      offset ? std::optional<int64_t>(offset->guard_int(__FILE__, __LINE__)) : std::nullopt);
}
at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}
at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}
at::Tensor unfold(const at::Tensor& self, int64_t dim, int64_t size, int64_t step) {
  return at::native::unfold(self, dim, size, step);
}
at::Tensor& set_storage(
    at::Tensor& self, at::Storage source, c10::SymInt offset, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::set_storage_cpu_(
      self, source, offset.guard_int(__FILE__, __LINE__), C10_AS_INTARRAYREF_SLOW(size),
      C10_AS_INTARRAYREF_SLOW(stride));
}
void record_stream(at::Tensor&, c10::Stream) {}

// ---- kernels: the CPU's, of tensors that may be computed together ----------------------------------------------------

// Operators that real CUDA, too, gives tensors of the host: indices are uploaded, copies are copies.
const std::set<std::string> mixing = {
    "aten::index", "aten::index_put_", "aten::_index_put_impl_", "aten::index_put", "aten::_unsafe_index",
    "aten::_unsafe_index_put", "aten::_to_copy", "aten::copy_", "aten::_copy_from", "aten::_copy_from_and_resize",
    "aten::_foreach_copy_", "aten::set_", "aten::_has_compatible_shallow_copy_type", "aten::equal"};
const std::set<std::string> products = {
    "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation"};

struct Seen {
  std::set<std::string> devices;
  std::string shapes;
  int device = -1;
  void look(const at::Tensor& t, bool strict) {
    if (!t.defined()) return;
    if (t.is_cuda() && device < 0) device = t.device().index();
    if (!strict && t.is_cpu() && t.dim() == 0) return;  // a number of the host may go along
    devices.insert(t.device().str());
    std::stringstream text;
    text << t.device().str() << t.sizes() << " ";
    shapes += text.str();
  }
};

// A float32 number with the ten bits of mantissa that tensor cores read.
at::Tensor rounded(const at::Tensor& t) {
  if (!t.defined() || t.scalar_type() != at::kFloat) return t;
  auto bits = t.contiguous().view(at::kInt);
  auto odd = at::bitwise_and(at::__rshift__(bits, 13), 1);
  auto kept = at::bitwise_and(bits + 0xFFF + odd, static_cast<int64_t>(~0x1FFF));
  return kept.view(at::kFloat).view(t.sizes());
}

bool is_random(const c10::OperatorHandle& op) {
  for (const auto& argument : op.schema().arguments())
    if (argument.type()->str().find("Generator") != std::string::npos) return true;
  return op.schema().name().find("dropout") != std::string::npos;
}

void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) { at::native::cpu_fallback(op, stack); }

// Draws come from the device's generator: a given one is lent to the CPU's kernel; otherwise the CPU's default
// generator has the state of the device's while the kernel runs.
void run_random(const c10::OperatorHandle& op, torch::jit::Stack* stack, int device) {
  for (const auto& value : torch::jit::last(*stack, op.schema().arguments().size())) {
    if (!value.isGenerator()) continue;
    auto* generator = dynamic_cast<DeviceGenerator*>(value.toGenerator().unsafeGetGeneratorImpl());
    TORCH_CHECK(generator, "Expected a 'cuda' device type for generator but found 'cpu'");
    const auto home = generator->device();
    generator->belong(c10::Device(c10::DeviceType::CPU));
    try {
      run(op, stack);
    } catch (...) {
      generator->belong(home);
      throw;
    }
    generator->belong(home);
    return;
  }
  auto cpu = at::detail::getDefaultCPUGenerator();
  auto& own = default_generator(device);
  const auto kept = cpu.get_state();
  cpu.set_state(own.get_state());
  run(op, stack);
  own.set_state(cpu.get_state());
  cpu.set_state(kept);
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& name = op.schema().name();
  const bool strict = name == "aten::cat" || name == "aten::stack";
  Seen seen;
  auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  for (const auto& value : arguments) {
    if (value.isTensor()) seen.look(value.toTensor(), strict);
    else if (value.isTensorList()) for (const auto& t : value.toTensorVector()) seen.look(t, strict);
    else if (value.isOptionalTensorList())
      for (const auto& t : value.toOptionalTensorVector()) { if (t.has_value()) seen.look(*t, strict); }
  }
  TORCH_CHECK(
      seen.devices.size() <= 1 || mixing.count(name),
      "Expected all tensors to be on the same device, but found at least two devices in ", name, ": ", seen.shapes);
  c10::DeviceGuard guard(
      c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(seen.device < 0 ? current : seen.device)));
  if (rounds_to_tf32) {
    const bool convolves = name.find("convolution") != std::string::npos && at::globalContext().allowTF32CuDNN();
    const bool multiplies = products.count(name) && at::globalContext().allowTF32CuBLAS();
    if (convolves || multiplies)
      for (size_t i = 0, first = stack->size() - arguments.size(); i < arguments.size(); ++i) {
        const auto* alias = op.schema().arguments()[i].alias_info();
        const bool is_written = alias && alias->isWrite();
        auto& value = (*stack)[first + i];
        if (value.isTensor() && !is_written) value = rounded(value.toTensor());
      }
  }
  if (is_random(op)) run_random(op, stack, current);
  else run(op, stack);
}

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", &empty_memory);
  m.impl("empty_strided", &empty_strided);
  m.impl("copy_", &copy_);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("resize_", &resize_);
  m.impl("_local_scalar_dense", &scalar);
  m.impl("as_strided", &as_strided);
  m.impl("view", &view);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("unfold", &unfold);
  m.impl("record_stream", &record_stream);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("convolution", torch::CppFunction::makeFromBoxedFunction<&fallback>());
  m.impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace

extern "C" {
int pretended_current() { return current; }
void pretended_set_current(int device) { current = device; }
void pretended_refuse_float64(int yes) { refuses_float64 = yes != 0; }
void pretended_round_to_tf32(int yes) { rounds_to_tf32 = yes != 0; }
void pretended_read_late(int yes) { reads_late = yes != 0; }
void pretended_limit_memory(long long bytes) { limit_bytes = bytes; }
long long pretended_limit() { return limit_bytes; }
long long pretended_used(int device) { return used_bytes[device]; }
long long pretended_peak(int device) { return peak_bytes[device]; }
void pretended_reset_peak(int device) { peak_bytes[device] = used_bytes[device].load(); }
void pretended_hand_out_default(int yes) { hand_out_default = yes != 0; }
}
