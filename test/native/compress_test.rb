# frozen_string_literal: true

require_relative "../test_helper"
require "open3"
require "rbconfig"
require "tmpdir"

# Builds compress_test.c with the sanitizers and runs it; then liblz4 reads our blocks, we read liblz4's, and zlib
# checks our CRC.
class CompressTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  SANITIZE = %w[-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer].freeze
  # The code under test allocates nothing, and the search for leaks fails under strace and in some containers.
  ENVIRONMENT = { "ASAN_OPTIONS" => "detect_leaks=0", "UBSAN_OPTIONS" => "print_stacktrace=1" }.freeze

  # Built once for all tests: [program, sanitized?], or a String that says why there is none.
  def self.build
    @build ||= begin
      dir = Dir.mktmpdir("pitwall-compress")
      Minitest.after_run { FileUtils.remove_entry(dir) }
      File.write(File.join(dir, "probe.c"), "int main(void) { return 0; }\n")
      probe = lambda do |flags|
        compile(File.join(dir, "probe"), flags, File.join(dir, "probe.c")).last && system(ENVIRONMENT, File.join(dir, "probe"))
      end
      if !probe.call([])
        "peer absent: a C compiler (apt-get install gcc libc6-dev)"
      else
        sanitized = probe.call(SANITIZE)
        program = File.join(dir, "compress_test")
        output, ok = compile(program, %w[-std=gnu11 -g -O1 -Wall -Wextra -Werror] + (sanitized ? SANITIZE : []),
                             "-I#{ROOT}/ext/pitwall", "#{__dir__}/compress_test.c", "#{ROOT}/ext/pitwall/output/compress.c")
        raise "compress_test.c does not compile:\n#{output}" unless ok

        [program, sanitized]
      end
    end
  end

  def self.compile(program, flags, *rest)
    output, status = Open3.capture2e(ENV.fetch("CC", "cc"), *flags, *rest, "-o", program)
    [output, status.success?]
  rescue Errno::ENOENT => e
    [e.message, false]
  end

  def setup
    built = self.class.build
    skip built if built.is_a?(String)
    @program, @sanitized = built
  end

  def test_native_checks
    output, status = Open3.capture2e(ENVIRONMENT, @program)
    assert_predicate status, :success?, output
    assert_equal 4, output.scan(": ok").size, output
    skip "passed, but without sanitizers: #{ENV.fetch("CC", "cc")} cannot link -fsanitize=address,undefined" unless @sanitized
  end

  def test_own_round_trip_through_the_helper_modes
    samples.each do |name, data|
      block = compress(data) or next
      assert_operator block.bytesize, :<, data.bytesize, name
      assert_equal data, decompress(block, data.bytesize), name
    end
  end

  def test_liblz4_reads_our_blocks
    read = liblz4("LZ4_decompress_safe", 2)
    blocks = 0
    samples.each do |name, data|
      block = compress(data) or next
      blocks += 1
      buffer = "\0".b * data.bytesize
      assert_equal data.bytesize, read.call(block, buffer, block.bytesize, buffer.bytesize), name
      assert_equal data, buffer, name
    end
    assert_operator blocks, :>, samples.size / 2
  end

  def test_we_read_blocks_of_liblz4
    write = liblz4("LZ4_compress_default", 2)
    samples.each do |name, data|
      buffer = "\0".b * (data.bytesize + data.bytesize / 255 + 16)
      size = write.call(data, buffer, data.bytesize, buffer.bytesize)
      assert_operator size, :>, 0, name
      assert_equal data, decompress(buffer.byteslice(0, size), data.bytesize), name
    end
  end

  def test_crc_is_that_of_zlib
    require "zlib"
    samples.each { |name, data| assert_equal Zlib.crc32(data), run_mode("crc", data).to_i(16), name }
  rescue LoadError
    skip "peer absent: zlib (build Ruby with zlib1g-dev installed)"
  end

  def test_malformed_input_is_refused
    assert_nil decompress("\x14a\x00\x00\x50bcdef".b, 14)
    assert_nil decompress("".b, 0)
  end

  private

  def samples
    @samples ||= begin
      random = Random.new(1)
      words = File.read(__FILE__).split(/\b/)
      {
        "empty" => "".b,
        "one byte" => "a".b,
        "13 equal bytes" => ("a" * 13).b,
        "random" => random.bytes(70_000),
        "zeros" => "\0".b * 1_000_000,
        "period 7" => ("abcdefg" * 30_000).b,
        "source" => File.binread("#{__dir__}/compress_test.c"),
        "words" => Array.new(60_000) { words[random.rand(words.size)] }.join.b,
        "numbers" => Array.new(50_000) { random.rand(300) }.pack("w*"),
        "compiled program" => File.binread(@program),
        "random, repeated at the largest offset" => random.bytes(65_535) * 2,
        "random, repeated past the largest offset" => random.bytes(65_536) * 2,
        "16 MiB" => (random.bytes(1000) + "\0" * 24).b * 16_384
      }.merge((14..60).to_h { |n| ["#{n} bytes of few", Array.new(n) { random.rand(2) }.pack("C*")] })
    end
  end

  # nil when the block would not be smaller.
  def compress(data)
    run_mode("compress", data, allowed: 2)
  end

  # nil when the block is malformed.
  def decompress(block, raw)
    run_mode("decompress", raw.to_s, block, allowed: 3)
  end

  # What the program wrote; nil when it left with the exit status `allowed`.
  def run_mode(*arguments, input, allowed: 0)
    output, error, status = Open3.capture3(ENVIRONMENT, @program, *arguments, stdin_data: input, binmode: true)
    assert_includes [0, allowed], status.exitstatus, error
    output if status.success?
  end

  # int name(const char *source, char *target, int, int)
  def liblz4(name, ints)
    require "fiddle"
    library = Fiddle.dlopen("liblz4.so.1")
    Fiddle::Function.new(library[name], [Fiddle::TYPE_VOIDP] * 2 + [Fiddle::TYPE_INT] * ints, Fiddle::TYPE_INT)
  rescue LoadError
    skip "peer absent: fiddle (gem install fiddle)"
  rescue Fiddle::DLError
    skip "peer absent: liblz4 (apt-get install liblz4-1)"
  end
end
