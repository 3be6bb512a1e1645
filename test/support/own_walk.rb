# frozen_string_literal: true

require "open3"
require "rbconfig"
require_relative "../../script/checkout"

# Whether the extension under test walks stacks itself, by its own word. On a Ruby whose layout is not known it does
# not; then it does not read from outside, trace, or take stacks of allocations.
module OwnWalk
  module_function

  #: () -> bool
  def used? = refusal.nil?

  # Why not, or nil.
  #: () -> String?
  def refusal
    @refusal ||= begin
      lib = ENV["TEST_LIB"] || File.join(Checkout::ROOT, "lib")
      ask = 'require "pitwall/native"; require "pitwall/version"; Pitwall.load_native!; print Pitwall::Native.walk_refusal'
      output, status = Open3.capture2e({ "LD_PRELOAD" => ENV["TEST_PRELOAD"] }, RbConfig.ruby, "--disable-gems", "-I#{lib}", "-e", ask)
      status.success? ? output : raise(output)
    end
    @refusal.empty? ? nil : @refusal
  end

  # Was the build told to know no layout? See `test:unknown`.
  #: () -> bool
  def forced_unknown? = !ENV["PITWALL_UNKNOWN_LAYOUT"].to_s.empty?
end
