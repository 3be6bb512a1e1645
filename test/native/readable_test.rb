# frozen_string_literal: true

require_relative "../test_helper"
require "open3"
require "tmpdir"

# Whether an address may be read is asked in one place, in a signal handler and outside of it alike.
class ReadableTest < Minitest::Test
  EXT = File.expand_path("../../ext/pitwall", __dir__)
  # By Pitwall's own system call where there is one, and by the C library's.
  WAYS = { "own system call" => [], "the C library's" => %w[-DPW_DISPATCH_OFF] }.freeze

  WAYS.each do |name, flags|
    define_method("test_by_#{name.tr(" '", "__")}") do
      Dir.mktmpdir("pitwall-readable") do |dir|
        program = File.join(dir, "readable_test")
        output, status = Open3.capture2e(ENV.fetch("CC", "cc"), *%w[-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror], *flags,
                                         "-I#{EXT}", "#{__dir__}/readable_test.c", "#{EXT}/tools/raw_syscall.c",
                                         "-o", program)
        assert_predicate status, :success?, output
        output, status = Open3.capture2e(program)
        assert_predicate status, :success?, output
        assert_equal "readable: ok\n", output
      end
    rescue Errno::ENOENT => e
      skip "peer absent: a C compiler (#{e.message})"
    end
  end

  # There were four of them once, which differed.
  def test_nobody_else_asks_the_kernel
    others = Dir["#{EXT}/**/*.{c,h}"].select { |file| File.read(file).match?(/rt_sigprocmask\w*, ~0/i) }
    assert_equal ["#{EXT}/tools/readable.h"], others
  end

  # A function that no header declares is declared in vm_compat.h, once.
  def test_functions_without_a_header_are_declared_once
    declared = Dir["#{EXT}/**/*.{c,h}"].flat_map do |file|
      File.read(file).scan(/^ *extern [^;(]*?\b(rb_\w+|ruby_\w+)\(/).flatten.map { |name| [name, File.basename(file)] }
    end
    assert_includes declared, ["rb_gc_obj_slot_size", "vm_compat.h"]
    assert_equal declared.uniq, declared
    assert_empty declared.reject { |_, file| file == "vm_compat.h" }
  end
end
