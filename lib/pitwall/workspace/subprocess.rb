# frozen_string_literal: true

require "tempfile"
require "pitwall/launch/process_group"

module Pitwall
  class Workspace
    # Programs that build a side: each leads a process group of its own, and nothing of that group outlives the call,
    # also when this process is interrupted in the middle of it.
    # @api private
    module Subprocess
      Finished = Struct.new(:status, :out, :err) do
        def success? = status.success?
      end

      GRACE = 2.0 # seconds between asking a group to end and ending it
      private_constant :GRACE

      module_function

      # Raises SystemCallError when the program can't be started.
      #: (Array[String], dir: String, ?env: Hash[String, String?], ?input: String, **untyped) -> Process::Status
      # @param input [String] path of the file to read from
      def run(command, dir:, env: {}, input: File::NULL, **streams)
        program, *arguments = command
        # The pair keeps Ruby from giving a lone word to a shell.
        pid = Process.spawn(env, [program, program], *arguments, in: input, chdir: dir, pgroup: true, **streams)
        _, status = Process.wait2(pid)
        status
      ensure
        ProcessGroup.finish(pid, grace: GRACE, ask: status.nil?, reaped: !status.nil?) if pid
      end

      # Runs it and takes what it writes, as UTF-8.
      #: (Array[String], dir: String, ?env: Hash[String, String?], ?input: String?) -> Finished
      # @param input [String, nil] what it reads
      def capture(command, dir:, env: {}, input: nil)
        Tempfile.create("pitwall-in") do |source|
          source.binmode.write(input.to_s)
          source.close
          Tempfile.create("pitwall-out") do |out|
            Tempfile.create("pitwall-err") do |err|
              status = run(command, dir: dir, env: env, input: source.path, out: out, err: err)
              Finished.new(status, *[out, err].map { |file| File.binread(file.path).force_encoding(Encoding::UTF_8).scrub })
            end
          end
        end
      end
    end
  end
end
