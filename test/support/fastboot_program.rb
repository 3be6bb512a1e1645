# frozen_string_literal: true

require_relative "command_line"

# Runs a program without the accelerator, and with it: with an empty pack first, then with one that has its code.
module FastbootProgram
  include CommandLine

  LIB = File.join(Checkout::ROOT, "lib")
  COUNTING = File.join(__dir__, "fastboot_counting.rb")
  # A boot that requires this file is killed while it writes.
  KILLING = File.join(__dir__, "fastboot_killing.rb")
  # Ruby code. Files of data that a test has just written are stored at once.
  NOT_FRESH = "Pitwall::Fastboot::DataCache.prepend(Module.new { def fresh?(_) = false })"
  Boot = Struct.new(:out, :err, :status, :counts)

  # @param arguments [Array<String>] Ruby's
  #: (*String, ?env: Hash, ?dir: String) -> Boot
  def plain(*arguments, env: {}, dir: @dir)
    result = capture(env, RbConfig.ruby, "-I#{LIB}", *arguments, dir: dir)
    Boot.new(frames(result.out), frames(result.err), ending(result.status), {})
  end

  # @param cache [String] the folder of the pack
  #: (*String, ?env: Hash, ?dir: String, ?cache: String) -> Boot
  def boot(*arguments, env: {}, dir: @dir, cache: file("cache"))
    counts = file("counts")
    FileUtils.rm_f(counts)
    env = { "PITWALL_BOOT_CACHE" => cache, "BOOT_COUNTS" => counts, **env }
    result = capture(env, RbConfig.ruby, "-I#{LIB}", "-rpitwall/fastboot", "-r#{COUNTING}", *arguments, dir: dir)
    found = File.exist?(counts) ? eval(File.read(counts)) : {}
    Boot.new(frames(result.out), frames(result.err), ending(result.status), found)
  end

  # Files whose code came from the pack.
  #: (Boot) -> Integer
  def hits(boot) = boot.counts.values_at("hit", "hit_by_content").compact.sum

  #: (Boot, Boot, ?String) -> void
  def assert_same(expected, found, about = nil)
    assert_equal expected.out, found.out, about
    assert_equal expected.err, found.err, about
    assert_equal expected.status, found.status, about
  end

  private

  def ending(status) = status.termsig ? "signal #{status.termsig}" : "exit #{status.exitstatus}"

  # Without the frames of `require`: RubyGems has two, the accelerator one with its caller's line. Without addresses.
  def frames(text)
    text = text.gsub(/(?:, )?"[^"]*in [`'](?:Kernel#)?require'"/, "")
    text.gsub(/^\s+(?:\d+: )?from .*in\s+[`'](?:Kernel#)?require'\n/, "").gsub(/0x\h{16}/, "0xADDRESS")
  end
end
