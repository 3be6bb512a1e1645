# frozen_string_literal: true

require "open3"
require "rbconfig"
require_relative "../../script/checkout"

# Whether the extension under test walks stacks itself, as the extension reports. The extension does not walk stacks of
# a Ruby whose layout is not known. Then it does not read from outside, trace, or take stacks of allocations.
module OwnWalk
  module_function

  #: () -> bool
  def used? = refusal.nil?

  # The reason why the extension does not walk stacks, or nil.
  #: () -> String?
  def refusal
    @refusal ||= begin
      lib = ENV["TEST_LIB"] || File.join(Checkout::ROOT, "lib")
      ask = 'require "pitwall/native"; require "pitwall/version"; Pitwall.load_native!; ' \
            "print Pitwall::Native.walk_refusal"
      command = [RbConfig.ruby, "--disable-gems", "-I#{lib}", "-e", ask]
      output, status = Open3.capture2e({ "LD_PRELOAD" => ENV["TEST_PRELOAD"] }, *command)
      status.success? ? output : raise(output)
    end
    @refusal.empty? ? nil : @refusal
  end

  # Whether the extension was built with no known layout (`test:unknown`).
  #: () -> bool
  def forced_unknown? = !ENV["PITWALL_UNKNOWN_LAYOUT"].to_s.empty?
end
