# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"

# Shared objects with and without symbols, made by the compilers of this machine. binutils come with gcc.
class NativeObjects
  C = <<~'CODE'
    static __attribute__((noinline)) int hidden(int n) { int sum = 0; for (int i = 0; i < n; i++) sum ^= i * n; return sum; }
    static __attribute__((noinline)) int hidden_too(int n) { return hidden(n + 1) + 1; }
    int shown(int n) { return hidden(n) + hidden_too(n); }
    int __other(int n) __attribute__((alias("shown")));
  CODE
  CPP = <<~'CODE'
    #include <vector>
    namespace shop {
      class Cart { public: __attribute__((noinline)) int total(int n); __attribute__((noinline)) int total(long n); };
      int Cart::total(int n) { return n * 3; }
      int Cart::total(long n) { return (int)n * 5; }
      namespace { __attribute__((noinline)) int secret(std::vector<int> &all) { all.push_back(1); return (int)all.size(); } }
    }
    extern "C" int enter(int n) { std::vector<int> all; shop::Cart cart; return cart.total(n) + cart.total((long)n) + shop::secret(all); }
  CODE
  RUST = <<~'CODE'
    pub mod cart {
        pub struct Cart { pub items: Vec<i64> }
        impl Cart { #[inline(never)] pub fn total(&self) -> i64 { self.items.iter().sum() } }
        impl std::fmt::Display for Cart {
            #[inline(never)]
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "{}", self.total()) }
        }
        #[inline(never)] pub fn largest<T: PartialOrd + Copy>(all: &[T]) -> Option<T> {
            let mut best = None;
            for one in all { if best.map_or(true, |b| *one > b) { best = Some(*one); } }
            best
        }
    }
    #[no_mangle] pub extern "C" fn enter(n: i64) -> i64 {
        let cart = cart::Cart { items: vec![n, 2, 3] };
        cart.total() + cart.to_string().len() as i64 + cart::largest(&cart.items).unwrap()
    }
  CODE

  def self.rust? = system("rustc", "--version", out: File::NULL, err: File::NULL) || false

  #: () -> String
  attr_reader :dir

  def initialize
    @dir = Dir.mktmpdir("pitwall-objects-")
  end

  def remove = FileUtils.rm_rf(@dir)

  def path(name) = File.join(@dir, name)

  # An object with all symbols.
  def c(name = "libshop.so", text: C, options: [])
    File.write(path("#{name}.c"), text)
    run("cc", "-O1", "-shared", "-fPIC", "-Wl,--build-id=sha1", *options, path("#{name}.c"), "-o", path(name))
  end

  def cpp(name = "libcart.so")
    File.write(path("#{name}.cc"), CPP)
    run("c++", "-O1", "-shared", "-fPIC", "-Wl,--build-id=sha1", path("#{name}.cc"), "-o", path(name))
  end

  # mangling: "legacy" or "v0"
  def rust(mangling, name = "librust-#{mangling}.so")
    File.write(path("#{name}.rs"), RUST)
    more = mangling == "legacy" ? ["-Zunstable-options"] : []
    run({ "RUSTC_BOOTSTRAP" => "1" }, "rustc", "--edition", "2021", "--crate-type", "cdylib", "--crate-name", "rusty", "-O",
        *more, "-Csymbol-mangling-version=#{mangling}", "-Clink-arg=-Wl,--build-id=sha1", path("#{name}.rs"), "-o", path(name))
  end

  def stripped(name, to)
    run("strip", "-o", path(to), path(name))
  end

  def debug_file(name, to)
    FileUtils.mkdir_p(File.dirname(path(to)))
    run("objcopy", "--only-keep-debug", path(name), path(to))
  end

  # A stripped copy that has the name of its debug file in it.
  def linked(name, debug, to)
    stripped(name, to)
    Dir.chdir(File.dirname(path(debug))) { run("objcopy", "--add-gnu-debuglink=#{File.basename(debug)}", path(to)) }
    path(to)
  end

  def without_build_id(name, to) = run("objcopy", "--remove-section=.note.gnu.build-id", path(name), path(to))

  #: (String) -> String
  def build_id(name) = output("readelf", "-n", path(name))[/Build ID: (\h+)/, 1]

  # {linkage name => address} of the functions, as nm has them.
  def functions(name, *options)
    lines = output("nm", *options, "--defined-only", path(name)).lines.map(&:split)
    lines.select { |_, type, _| type.to_s.match?(/\A[tTwW]\z/) }.to_h { |address, _, symbol| [symbol.split("@").first, address.hex] }
  end

  private

  def run(*command)
    text, status = Open3.capture2e(*command)
    raise "#{command.join(" ")}: #{text}" unless status.success?

    command.last
  end

  def output(*command)
    text, status = Open3.capture2(*command)
    raise "#{command.join(" ")} fails" unless status.success?

    text
  end
end
