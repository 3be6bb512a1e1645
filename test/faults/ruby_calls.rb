# frozen_string_literal: true

# Loaded into a process: the N-th call of File, IO or Dir that comes from Pitwall's own Ruby code fails.
#
#   PITWALL_RUBY_FAULT=ENOSPC:17    17+: it and all after it
#   PITWALL_RUBY_CALLS=FILE         at the end: how many such calls there were
module RubyFaults
  CALLS = %i[open read binread write binwrite readlines foreach new rename unlink chmod stat lstat truncate mkdir rmdir
             children realpath symlink mktmpdir sysopen copy_stream].freeze
  OURS = %r{/lib/pitwall/}
  @calls = 0
  name, at = ENV["PITWALL_RUBY_FAULT"].to_s.split(":")
  ERROR = Errno.const_get(name) if name
  AT = at.to_i
  ON = at.to_s.end_with?("+")

  def self.fail_now?
    @calls += 1
    defined?(ERROR) && (@calls == AT || (ON && @calls > AT))
  end

  def self.calls = @calls

  # Only of what each has, so that nothing answers to more than before.
  own = lambda do |owner|
    Module.new do
      CALLS.select { |call| owner.respond_to?(call) }.each do |call|
        define_method(call) do |*arguments, **options, &block|
          raise ERROR, arguments.first.to_s if caller_locations(1, 1).first.path.match?(OURS) && RubyFaults.fail_now?

          super(*arguments, **options, &block)
        end
      end
    end
  end
  [File, Dir].each { |owner| owner.singleton_class.prepend(own.call(owner)) }

  calls = ENV["PITWALL_RUBY_CALLS"]
  pid = Process.pid
  at_exit { IO.write(calls, @calls.to_s) if calls && Process.pid == pid }
end
