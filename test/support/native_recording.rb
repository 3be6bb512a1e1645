# frozen_string_literal: true

require_relative "recording_builder"

# A recording with native frames: `require` of many files as the first source profiled it, in hundredths of a percent.
module NativeRecording
  RUBY = "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2"
  LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
  MAIN = ["<main>", "/srv/app/boot.rb", 1, 12].freeze
  REQUIRE = ["Kernel#require", "", 0, 0, 1].freeze
  # Stack below `require` → weight.
  STACKS = {
    %w[rb_feature_p rb_string_value_ptr] => 2838, %w[rb_feature_p] => 1641, %w[rb_feature_p loaded_feature_path] => 2100,
    %w[rb_feature_p rb_file_expand_path str_new vm_xmalloc garbage_collect gc_mark] => 700,
    %w[rb_feature_p rb_file_expand_path str_new vm_xmalloc garbage_collect st_foreach mark_entry] => 300,
    %w[rb_feature_p rb_file_expand_path str_new vm_xmalloc garbage_collect st_foreach mark_entry gc_mark] => 100,
    %w[rb_string_value_ptr] => 378, %w[rb_realpath_internal lstat64] => 1900, %w[] => 43
  }.freeze
  OF_LIBC = %w[lstat64].freeze

  module_function

  def bytes
    RecordingBuilder.build(program: "boot.rb") do |segment|
      segment.thread 1, "main"
      start = [native("main", "/usr/bin/ruby3.1"), native("rb_vm_exec")]
      STACKS.each do |names, wall|
        segment.row(stack: [*start, MAIN, REQUIRE, native("rb_require_safe"), *names.map { |name| native(name) }],
                    wall: wall, cpu: wall)
      end
    end
  end

  def native(name, object = OF_LIBC.include?(name) ? LIBC : RUBY) = [name, object, 0, 0, 3]
end
